// What a client says of its tasks: one JSON line each, for who started it to read. The words are those of plan.py.

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

export function check(condition, message) {
  if (!condition) throw new Error(message);
}

export function checkAnswer(answer) {
  check(answer === plan.answer, `the answer was ${JSON.stringify(answer)}`);
}

export function checkPieces(pieces) {
  checkAnswer(pieces.join(""));
  check(pieces.length >= 3, `it came at once: ${JSON.stringify(pieces)}`);
}

// The client's own tool, which remembers whether it was asked.
export class Weather {
  asked = [];
  look = ({ city }) => {
    this.asked.push(city);
    return plan.measured;
  };
  check(answer) {
    const asked = JSON.stringify(this.asked);
    check(asked === JSON.stringify([plan.city]), `the tool was asked for ${asked}`);
    checkAnswer(answer);
  }
}

export async function told(model, task) {
  const said = { model };
  try {
    await task(model);
  } catch (error) {
    console.error(error);
    said.error = `${error?.name}: ${error?.message}`.slice(0, 300);
  }
  console.log(JSON.stringify(said));
}

// Every task of an API, for every dialect that the provider may speak.
export async function play(api, tasks, dialects = DIALECTS) {
  for (const dialect of dialects)
    for (const [name, task] of Object.entries(tasks)) await told(`gateway.${dialect}.${api}.${name}`, task);
}
