// The peer of half.star: llama.cpp's probabilities of every token after each of those in tokens.json, of all models of
// a folder. It asks node-llama-cpp:
//
//     npm install -E node-llama-cpp@3.21.1
//     node examples/bench/half.mjs folder name
//
// and writes folder/name-model.json for each model.gguf. One pass, one thread, keys and values in f32, no flash
// attention. The package is looked for in the working directory, or in the folder that ROOT names.

import {readdirSync, readFileSync, writeFileSync} from "node:fs";
import {createRequire} from "node:module";
import {join} from "node:path";
import {pathToFileURL} from "node:url";

const from = createRequire(join(process.env.ROOT ?? process.cwd(), "package.json"));
const {getLlama} = await import(pathToFileURL(from.resolve("node-llama-cpp")).href);
const [folder, name] = process.argv.slice(2);
const tokens = JSON.parse(readFileSync(join(folder, "tokens.json"), "utf8"));
const llama = await getLlama({gpu: false, build: "never", maxThreads: 1});
const options = {temperature: 1, topK: 0, topP: 1, minP: 0};

for (const file of readdirSync(folder).filter((file) => file.endsWith(".gguf"))) {
    const model = await llama.loadModel({modelPath: join(folder, file), gpuLayers: 0});
    const context = await model.createContext({
        contextSize: 512, threads: 1, flashAttention: false,
        experimentalKvCacheKeyType: "F32", experimentalKvCacheValueType: "F32"
    });
    const asked = tokens.map((token) => [token, {generateNext: {probabilities: true, options}}]);
    const results = await context.getSequence().controlledEvaluate(asked);
    const rows = results.map(({next}) => [...next.probabilities].sort(([a], [b]) => a - b).map(([, p]) => p));
    writeFileSync(join(folder, `${name}-${file.replace(/gguf$/, "json")}`), JSON.stringify(rows));
    await context.dispose();
    await model.dispose();
}
await llama.dispose();
