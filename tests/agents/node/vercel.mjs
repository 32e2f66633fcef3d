// The Vercel AI SDK (`ai`): text whole and as a stream, and its own loop of tools, on its OpenAI and Anthropic models.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { embedMany, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { check, checkAnswer, checkPieces, gateway, parameters, plan, play, Weather } from "./telling.mjs";

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

async function pieces(result) {
  const found = [];
  for await (const piece of result.textStream) found.push(piece);
  return found;
}

const made = { chat: openai.chat, responses: openai.responses, messages: anthropic };
for (const [api, make] of Object.entries(made))
  await play(api, {
    whole: async (model) => checkAnswer((await generateText({ model: make(model), prompt })).text),
    stream: async (model) => checkPieces(await pieces(streamText({ model: make(model), prompt }))),
    tools: async (model) => {
      const weather = new Weather();
      weather.check((await generateText({ model: make(model), ...looped(weather) })).text);
    },
    "tools-stream": async (model) => {
      const weather = new Weather();
      const found = await pieces(streamText({ model: make(model), ...looped(weather) }));
      weather.check(found.join(""));
      checkPieces(found);
    },
  });

await play("completions", {
  whole: async (model) => checkAnswer((await generateText({ model: openai.completion(model), prompt })).text),
  stream: async (model) => checkPieces(await pieces(streamText({ model: openai.completion(model), prompt }))),
});

const embed = async (model) => {
  const { embeddings } = await embedMany({ model: openai.embedding(model), values: [prompt, "And in Bergen?"] });
  check(embeddings.length === 2, `${embeddings.length} vectors`);
};
await play("embeddings", { embed }, ["chat"]);
