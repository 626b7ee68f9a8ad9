// Opens the files that write.star wrote with the readers of @huggingface/gguf, hyllama and llama.cpp (node-llama-cpp):
// keys, tensors, their types and shapes have to be those that Fucina says, and llama.cpp has to write the same text as
// Fucina does of the weights that are no blocks. README.md tells how it is run.

import {readdirSync, readFileSync} from "node:fs"

const folder = process.argv.at(-1)
const {prompt, files} = JSON.parse(readFileSync(folder + "/files.json", "utf8"))
let failed = 0

// fail says what a reader made of a file.
function fail(file, reader, what) {
	console.log(`${file}: ${reader}: ${what}`)
	failed++
}

// TYPES is ggml's numbers of the types in the files.
const TYPES = {
	0: "f32", 1: "f16", 2: "q4_0", 3: "q4_1", 6: "q5_0", 7: "q5_1", 8: "q8_0", 10: "q2_k", 11: "q3_k", 12: "q4_k",
	13: "q5_k", 14: "q6_k", 20: "iq4_nl", 21: "iq3_s", 23: "iq4_xs", 24: "i8", 28: "f64", 34: "tq1_0", 35: "tq2_0",
	39: "mxfp4",
}

// plain is a file's tensors as Fucina has them, the slowest axis first.
const plain = infos => infos.map(t => [t.name, TYPES[t.dtype ?? t.type], (t.shape ?? []).map(Number).reverse()])

const readers = {
	"@huggingface/gguf": async path => (await import("@huggingface/gguf")).gguf(path, {allowLocalFile: true}),
	hyllama: async path => {
		const b = readFileSync(path)
		return (await import("hyllama")).ggufMetadata(b.buffer.slice(b.byteOffset, b.byteOffset + b.length))
	},
}

// parts is the files of a model.
function parts(file) {
	const stem = file.replace(/-00001-of-\d+\.gguf$/, "-")
	return stem == file ? [file] : readdirSync(folder).filter(name => name.startsWith(stem)).sort()
}

for (const [reader, open] of Object.entries(readers))
	for (const {file, keys, tensors} of files)
		try {
			const read = []
			for (const part of parts(file)) read.push(await open(folder + "/" + part))
			const got = read.flatMap(r => plain(r.tensorInfos))
			const own = ["version", "tensor_count", "tensorCount", "kv_count"] // that a reader adds
			const has = Object.keys(read[0].metadata).filter(k => !own.includes(k)).sort()
			if (JSON.stringify(got) != JSON.stringify(tensors))
				for (const [i, t] of tensors.entries())
					if (JSON.stringify(got[i]) != JSON.stringify(t)) {
						fail(file, reader, `tensor ${i} is ${JSON.stringify(got[i])}, want ${JSON.stringify(t)}`)
						break
					}
			if (JSON.stringify(has) != JSON.stringify(keys)) fail(file, reader, `keys are ${has}, want ${keys}`)
		} catch (e) {
			fail(file, reader, e)
		}

// readable is a text with one mark for bytes that are no UTF-8: how many they are shown as differs.
const readable = text => text.replace(/\ufffd+/g, "\ufffd")

process.execArgv.length = 0 // what node was started with is not for the process that tries llama.cpp out
const {getLlama, LlamaCompletion} = await import("node-llama-cpp")
const llama = await getLlama({gpu: false, build: "never"})
for (const {file, text} of files) {
	if (text === null) continue
	try {
		const model = await llama.loadModel({modelPath: folder + "/" + file})
		const context = await model.createContext({
			contextSize: 128, threads: 1, flashAttention: false,
			experimentalKvCacheKeyType: "F32", experimentalKvCacheValueType: "F32", // as Fucina keeps them
		})
		const completion = new LlamaCompletion({contextSequence: context.getSequence()})
		const got = readable(await completion.generateCompletion(prompt, {temperature: 0, maxTokens: 40}))
		const want = readable(text)
		let same = 0
		while (same < want.length && want[same] == got[same]) same++
		console.log(`${file}: llama.cpp writes ${got == want ? "the same text" : `${same} of ${want.length} characters`}`)
		const exact = /same|parts|f16|converted/.test(file)
		if (exact && got != want) fail(file, "llama.cpp", `writes ${JSON.stringify(got)}, want ${JSON.stringify(want)}`)
		await model.dispose()
	} catch (e) {
		fail(file, "llama.cpp", e)
	}
}
console.log(`${files.length} files, ${failed} failures`)
process.exit(failed > 0 ? 1 : 0)
