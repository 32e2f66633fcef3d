// The Vercel AI SDK (`ai`): text whole and as a stream, its own loop of tools, and two turns, on its OpenAI and Anthropic
// models.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { embedMany, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { check, checkAnswer, checkPieces, gateway, parameters, plan, play } from "./telling.mjs";

const openai = createOpenAI({ baseURL: `${gateway}/v1`, apiKey: "unused" });
const anthropic = createAnthropic({ baseURL: `${gateway}/v1`, apiKey: "unused" });
const prompt = plan.question;

function looped(weather) {
  const look = tool({
    description: "How warm it is.",
    inputSchema: jsonSchema(parameters),
    execute: async (given) => weather.look(given),
  });
  return { prompt, tools: { weather: look }, stopWhen: stepCountIs(3) };
}

// The pieces of a stream. An error that only `onError` is told of is not seen: the text must not resolve.
async function pieces(asked) {
  const result = streamText({ ...asked, onError: () => {} });
  const found = [];
  for await (const piece of result.textStream) found.push(piece);
  check(found.join("").endsWith(await result.text), "the text is not what was streamed");
  return found;
}

const made = { chat: openai.chat, responses: openai.responses, messages: anthropic };
for (const [api, make] of Object.entries(made))
  await play(api, {
    whole: async (model) => checkAnswer((await generateText({ model: make(model), prompt })).text),
    stream: async (model) => checkPieces(await pieces({ model: make(model), prompt })),
    tools: async (model, weather) => {
      weather.check((await generateText({ model: make(model), ...looped(weather) })).text);
    },
    "tools-stream": async (model, weather) => {
      const found = await pieces({ model: make(model), ...looped(weather) });
      weather.check(found.join(""));
      checkPieces(found);
    },
    turns: async (model) => {
      const first = await generateText({ model: make(model), prompt });
      const asked = (content) => ({ role: "user", content });
      const messages = [asked(prompt), ...first.response.messages, asked(plan.nextQuestion)];
      checkAnswer((await generateText({ model: make(model), messages })).text, plan.nextAnswer);
    },
  });

await play("completions", {
  whole: async (model) => checkAnswer((await generateText({ model: openai.completion(model), prompt })).text),
  stream: async (model) => checkPieces(await pieces({ model: openai.completion(model), prompt })),
});

const embed = async (model) => {
  const { embeddings } = await embedMany({ model: openai.embedding(model), values: [prompt, "And in Bergen?"] });
  check(embeddings.length === 2, `${embeddings.length} vectors`);
};
await play("embeddings", { embed }, ["chat"]);
