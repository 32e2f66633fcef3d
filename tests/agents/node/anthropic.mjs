// The @anthropic-ai/sdk package: messages whole, as a stream, and with a tool; token counts; models.

import Anthropic from "@anthropic-ai/sdk";
import { check, checkAnswer, checkPieces, gateway, parameters, plan, play, question, told } from "./telling.mjs";

const client = new Anthropic({ baseURL: gateway, apiKey: "unused" });
const asked = { max_tokens: 200, messages: question };
const tools = [{ name: "weather", description: "How warm it is.", input_schema: parameters }];

const text = (message) => message.content.map((block) => block.text ?? "").join("");

// The conversation that the results of a message's calls go on with.
function answered(message, weather) {
  const results = message.content
    .filter((block) => block.type === "tool_use")
    .map((block) => ({ type: "tool_result", tool_use_id: block.id, content: weather.look(block.input) }));
  return [...question, { role: "assistant", content: message.content }, { role: "user", content: results }];
}

await play("messages", {
  whole: async (model) => {
    const answer = await client.messages.create({ model, ...asked });
    check(answer.model === model, `answered as ${answer.model}`);
    checkAnswer(text(answer));
  },
  stream: async (model) => {
    const pieces = [];
    for await (const event of await client.messages.create({ model, ...asked, stream: true }))
      if (event.type === "content_block_delta") pieces.push(event.delta.text);
    checkPieces(pieces);
  },
  tools: async (model, weather) => {
    const first = await client.messages.create({ model, ...asked, tools });
    check(first.stop_reason === "tool_use", `stopped by ${first.stop_reason}`);
    const next = { model, ...asked, messages: answered(first, weather), tools };
    weather.check(text(await client.messages.create(next)));
  },
  "tools-stream": async (model, weather) => {
    const first = await client.messages.stream({ model, ...asked, tools }).finalMessage();
    const pieces = [];
    const next = client.messages.stream({ model, ...asked, messages: answered(first, weather), tools });
    next.on("text", (piece) => pieces.push(piece));
    weather.check(text(await next.finalMessage()));
    checkPieces(pieces);
  },
  turns: async (model) => {
    const first = await client.messages.create({ model, ...asked });
    const next = { role: "user", content: plan.nextQuestion };
    const messages = [...question, { role: "assistant", content: first.content }, next];
    checkAnswer(text(await client.messages.create({ model, ...asked, messages })), plan.nextAnswer);
  },
  beta: async (model) => {
    const betas = ["context-management-2025-06-27"];
    const edits = [{ type: "clear_tool_uses_20250919" }];
    checkAnswer(text(await client.beta.messages.create({ model, ...asked, betas, context_management: { edits } })));
  },
});

await told("count_tokens", async () => {
  const counted = await client.messages.countTokens({ model: "gateway.chat.messages.whole", messages: question });
  check(counted.input_tokens > 0, `${counted.input_tokens} tokens`);
});

await told("models", async () => {
  const names = [];
  for await (const model of client.models.list()) names.push(model.id);
  check(names.length > 100, `${names.length} models`);
  check((await client.models.retrieve(names[0])).id === names[0], "another model was retrieved");
});

await told("errors", async () => {
  const failed = await client.messages.create({ model: "nobody", ...asked }).catch((error) => error);
  check(failed instanceof Anthropic.NotFoundError, `${failed}`);
});
