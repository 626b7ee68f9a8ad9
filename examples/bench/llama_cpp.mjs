// The peer of loop.star: what llama.cpp says of the files of a folder. It asks node-llama-cpp:
//
//     npm install -E node-llama-cpp@3.21.1
//     node examples/bench/llama_cpp.mjs folder
//
// For model-f16.gguf, model-q8_0.gguf and model-q4_k_m.gguf there it writes model-*.json: the 200 tokens that are the
// most probable after the prompt of tokens.json, how far each score is above the second, and the negative
// log-probability of every token of the chunks but the first. One thread, keys and values in f32, no flash attention.
// The package is looked for in the working directory, or in the folder that ROOT names.

import {readFileSync, writeFileSync} from "node:fs";
import {createRequire} from "node:module";
import {join} from "node:path";
import {pathToFileURL} from "node:url";

const from = createRequire(join(process.env.ROOT ?? process.cwd(), "package.json"));
const {getLlama} = await import(pathToFileURL(from.resolve("node-llama-cpp")).href);
const folder = process.argv[2];
const {prompt, chunks} = JSON.parse(readFileSync(join(folder, "tokens.json"), "utf8"));
const llama = await getLlama({gpu: false, build: "never", maxThreads: 1});

/** The probabilities after the last of some tokens that follow those of the sequence. */
async function after(sequence, tokens) {
    const options = {temperature: 1, topK: 0, topP: 1, minP: 0};
    const last = [tokens.at(-1), {generateNext: {probabilities: true, options}}];
    const results = await sequence.controlledEvaluate([...tokens.slice(0, -1), last]);
    return results.at(-1).next.probabilities;
}

for (const type of ["f16", "q8_0", "q4_k_m"]) {
    const model = await llama.loadModel({modelPath: join(folder, `model-${type}.gguf`), gpuLayers: 0});
    const context = await model.createContext({
        contextSize: 512, threads: 1, flashAttention: false,
        experimentalKvCacheKeyType: "F32", experimentalKvCacheValueType: "F32"
    });
    const sequence = context.getSequence();
    const greedy = [], gap = [], nll = [];
    for (let next = prompt; greedy.length < 200; next = greedy.slice(-1)) {
        const [[best, p], [, q]] = [...(await after(sequence, next)).entries()].slice(0, 2);
        greedy.push(best);
        gap.push(Math.log(p / q));
    }
    for (const chunk of chunks) {
        await sequence.clearHistory();
        for (let i = 0; i + 1 < chunk.length; i++)
            nll.push(-Math.log((await after(sequence, [chunk[i]])).get(chunk[i + 1])));
    }
    writeFileSync(join(folder, `model-${type}.json`), JSON.stringify({greedy, gap, nll}));
    const mean = nll.reduce((a, b) => a + b, 0) / nll.length;
    console.log(`${type}: perplexity ${Math.exp(mean).toFixed(4)} of ${nll.length} tokens`);
    await context.dispose();
    await model.dispose();
}
await llama.dispose();
