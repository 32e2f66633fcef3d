// Translated answers read by the Vercel AI SDK's own models, whose zod schemas refuse what their provider never says.
// Reads a JSON file of answers, and says of each, whole and as a stream, what was wrong with it: one JSON line each.

import { readFileSync } from "node:fs";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";

const MODELS = {
  chat: (options) => createOpenAI(options).chat("model"),
  responses: (options) => createOpenAI(options).responses("model"),
  messages: (options) => createAnthropic(options)("claude-model"),
};
const prompt = [{ role: "user", content: [{ type: "text", text: "hi" }] }];

// The frames of a stream, as its dialect writes them: all but Chat name their events.
function frames(dialect, events) {
  const written = events.map((event) => {
    const name = dialect === "chat" ? "" : `event: ${event.type}\n`;
    return `${name}data: ${JSON.stringify(event)}\n\n`;
  });
  return written.join("") + (dialect === "chat" ? "data: [DONE]\n\n" : "");
}

function answering(dialect, body, type) {
  const fetch = async () => new Response(body, { headers: { "content-type": type } });
  return MODELS[dialect]({ apiKey: "unused", fetch });
}

async function whole({ asked, whole }) {
  const model = answering(asked, JSON.stringify(whole), "application/json");
  const { content } = await model.doGenerate({ prompt });
  return content.map((part) => part.type);
}

async function streamed({ asked, events }) {
  const model = answering(asked, frames(asked, events), "text/event-stream");
  const { stream } = await model.doStream({ prompt });
  const kinds = [];
  for await (const part of stream) {
    if (part.type === "error") throw part.error;
    kinds.push(part.type);
  }
  if (!kinds.includes("finish")) throw new Error("the stream has no finish");
  return kinds;
}

for (const answer of JSON.parse(readFileSync(process.argv[2], "utf-8")))
  for (const [how, read] of Object.entries({ whole, stream: streamed })) {
    const said = { name: answer.name, how };
    try {
      said.kinds = await read(answer);
    } catch (error) {
      said.error = `${error?.cause?.message ?? error?.message ?? JSON.stringify(error)}`.slice(0, 600);
    }
    console.log(JSON.stringify(said));
  }
