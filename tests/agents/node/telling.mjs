// The report of a client on its tasks: one JSON line each. The words are those of plan.py.

export const plan = JSON.parse(process.env.SMR_AGENTS_PLAN);
export const gateway = process.env.SMR_AGENTS_GATEWAY;
export const question = [{ role: "user", content: plan.question }];
export const parameters = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const DIALECTS = ["chat", "messages", "responses"];
const HANG_SECONDS = 100;
const AT_ONCE = 12;

// The client took for the answer what the provider did not say.
class Wrong extends Error {}

export function check(condition, message) {
  if (!condition) throw new Error(message);
}

export function checkAnswer(answer, wanted = plan.answer) {
  if (answer !== wanted) throw new Wrong(`the answer was ${JSON.stringify(answer)}`);
}

export function checkPieces(pieces) {
  checkAnswer(pieces.join(""));
  check(pieces.length >= 3, `it came at once: ${JSON.stringify(pieces)}`);
}

// The client's own tool, which remembers its calls.
export class Weather {
  asked = [];
  look = ({ city }) => {
    this.asked.push(city);
    return plan.measured;
  };
  get mistaken() {
    return this.asked.filter((city) => city !== plan.city);
  }
  check(answer) {
    if (!this.asked.length || this.mistaken.length) throw new Wrong(`the tool was asked for ${this.asked}`);
    checkAnswer(answer);
  }
}

export async function told(model, task) {
  const said = { model };
  const weather = new Weather();
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(() => resolve("late"), HANG_SECONDS * 1000);
  });
  try {
    if ((await Promise.race([task(model, weather), late])) === "late") said.hang = `${HANG_SECONDS} s`;
  } catch (error) {
    if (!(error instanceof Wrong)) console.error(error);
    said[error instanceof Wrong ? "wrong" : "error"] = `${error?.name}: ${error?.message}`.slice(0, 300);
  }
  clearTimeout(timer);
  if (weather.mistaken.length) said.wrong = `the tool was called for ${weather.mistaken}`;
  console.log(JSON.stringify(said));
}

// Only an answer that calls a tool can have a malformed event in the call.
const applies = (task, fault) => task.startsWith("tools") || !plan.faults[fault];

// A beta of Messages is left out of what another dialect is asked; one of Responses has no translation.
const possible = (task, api, dialect) => task !== "beta" || api === "messages" || api === dialect;

// Every task of an API, for every dialect that the provider may speak; then each with every fault of the provider.
export async function play(api, tasks, dialects = DIALECTS) {
  const faults = DIALECTS.includes(api) ? Object.keys(plan.faults) : [];
  const cell = async (dialect, fault) => {
    for (const [name, task] of Object.entries(tasks)) {
      if (!possible(name, api, dialect) || (fault && !applies(name, fault))) continue;
      await told([`gateway.${dialect}.${api}.${name}`, ...(fault ? [fault] : [])].join("."), task);
    }
  };
  for (const dialect of dialects) await cell(dialect, "");
  const failing = faults.flatMap((fault) => dialects.map((dialect) => [dialect, fault]));
  failing.sort(([, one], [, other]) => (other === "stall") - (one === "stall")); // the slowest first
  const worker = async () => {
    while (failing.length) await cell(...failing.shift());
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
