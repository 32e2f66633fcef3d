// The openai package: every endpoint of the gateway, whole, as a stream, and with a tool.

import OpenAI from "openai";
import { check, checkAnswer, checkPieces, gateway, parameters, plan, play, question, told } from "./telling.mjs";

const client = new OpenAI({ baseURL: `${gateway}/v1`, apiKey: "unused" });
const input = plan.question;
const next = { role: "user", content: plan.nextQuestion };

async function collect(stream, read) {
  const pieces = [];
  for await (const event of stream) {
    const piece = read(event);
    if (piece) pieces.push(piece);
  }
  return pieces;
}

function chatTools(weather) {
  const definition = { name: "weather", parameters, parse: JSON.parse, function: weather.look };
  return [{ type: "function", function: definition }];
}

const responseTools = [{ type: "function", name: "weather", parameters, strict: true }];

// The calls of a response, and the conversation that their results go on with.
function answered(response, weather) {
  const calls = response.output.filter((item) => item.type === "function_call");
  const results = calls.map((call) => ({
    type: "function_call_output",
    call_id: call.call_id,
    output: weather.look(JSON.parse(call.arguments)),
  }));
  return [...question, ...response.output, ...results];
}

await play("chat", {
  whole: async (model) => {
    const answer = await client.chat.completions.create({ model, messages: question });
    check(answer.model === model, `answered as ${answer.model}`);
    checkAnswer(answer.choices[0].message.content);
  },
  stream: async (model) => {
    const stream = await client.chat.completions.create({ model, messages: question, stream: true });
    checkPieces(await collect(stream, (chunk) => chunk.choices[0]?.delta.content));
  },
  tools: async (model, weather) => {
    const runner = client.chat.completions.runTools({ model, messages: question, tools: chatTools(weather) });
    weather.check(await runner.finalContent());
  },
  "tools-stream": async (model, weather) => {
    const asked = { model, messages: question, tools: chatTools(weather), stream: true };
    const pieces = [];
    const runner = client.chat.completions.runTools(asked).on("content", (piece) => pieces.push(piece));
    weather.check(await runner.finalContent());
    checkPieces(pieces);
  },
  turns: async (model) => {
    const first = await client.chat.completions.create({ model, messages: question });
    const messages = [...question, first.choices[0].message, next];
    const second = await client.chat.completions.create({ model, messages });
    checkAnswer(second.choices[0].message.content, plan.nextAnswer);
  },
});

await play("responses", {
  whole: async (model) => checkAnswer((await client.responses.create({ model, input })).output_text),
  stream: async (model) => {
    const stream = await client.responses.create({ model, input, stream: true });
    checkPieces(await collect(stream, (event) => event.type === "response.output_text.delta" && event.delta));
  },
  tools: async (model, weather) => {
    const first = await client.responses.create({ model, input: question, tools: responseTools });
    const next = { model, input: answered(first, weather), tools: responseTools };
    weather.check((await client.responses.create(next)).output_text);
  },
  "tools-stream": async (model, weather) => {
    const first = await client.responses.stream({ model, input: question, tools: responseTools }).finalResponse();
    const next = client.responses.stream({ model, input: answered(first, weather), tools: responseTools });
    const pieces = [];
    next.on("response.output_text.delta", (event) => pieces.push(event.delta));
    weather.check((await next.finalResponse()).output_text);
    checkPieces(pieces);
  },
  turns: async (model) => {
    const first = await client.responses.create({ model, input });
    const second = await client.responses.create({ model, input: [next], previous_response_id: first.id });
    checkAnswer(second.output_text, plan.nextAnswer);
  },
  beta: async (model) => {
    const betas = ["responses_multi_agent=v1"];
    const answer = await client.beta.responses.create({ model, input, betas, multi_agent: { enabled: true } });
    checkAnswer(answer.output.flatMap((item) => item.content.map((part) => part.text)).join(""));
  },
});

await play("completions", {
  whole: async (model) => checkAnswer((await client.completions.create({ model, prompt: input })).choices[0].text),
  stream: async (model) => {
    const stream = await client.completions.create({ model, prompt: input, stream: true });
    checkPieces(await collect(stream, (chunk) => chunk.choices[0]?.text));
  },
});

const embed = async (model) => {
  const { data } = await client.embeddings.create({ model, input: [input, "And in Bergen?"] });
  check(data.length === 2 && data.every((one) => one.embedding.length > 1), `vectors: ${JSON.stringify(data)}`);
};
await play("embeddings", { embed }, ["chat"]);

await told("models", async () => {
  const names = await collect(await client.models.list(), (model) => model.id);
  check(names.length > 100, `${names.length} models`);
  check((await client.models.retrieve(names[0])).id === names[0], "another model was retrieved");
});

await told("errors", async () => {
  const failed = await client.chat.completions.create({ model: "nobody", messages: question }).catch((error) => error);
  check(failed instanceof OpenAI.NotFoundError, `${failed}`);
});
