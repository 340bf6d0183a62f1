// In an empty project with the packed package and none of its optional peers: builds a server's bundle of the client, as the frameworks
// that render pages on a server do, and calls an agent with each.
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build as viteBuild } from 'vite'
import { build as esbuild } from 'esbuild'
import webpack from 'webpack'
import { createRuntime, defineAgent, text } from 'taskchart'
import { serve } from 'taskchart/http'

writeFileSync('server.js', `import { connect } from 'taskchart/client'
import * as hooks from 'taskchart/react'
const ask = async binding => {
  try {
    const client = await connect(process.env.AGENT, { bindings: [binding] })
    const { task } = await client.sendMessage({ message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hi' }] } })
    await client.close()
    return task.artifacts[0].parts[0].text + ' over ' + client.binding
  } catch (error) {
    return error.message
  }
}
Promise.all(['WEBSOCKET', 'JSONRPC', 'HTTP+JSON'].map(ask)).then(answers => console.log([typeof hooks.useAgent, ...answers].join('; ')))
`)
const EXPECTED = 'function; It works over WEBSOCKET; It works over JSONRPC; It works over HTTP+JSON'

const cwd = process.cwd()
const usual = { entryPoints: ['server.js'], bundle: true, platform: 'node', logLevel: 'warning' }
const banner = { js: "import { createRequire } from 'node:module'\nconst require = createRequire(import.meta.url)" }
const BUILDERS = {
  'esbuild to CommonJS': async () => {
    await esbuild({ ...usual, outfile: 'server-esbuild.cjs' })
    return 'server-esbuild.cjs'
  },
  'esbuild to ESM': async () => {
    await esbuild({ ...usual, format: 'esm', banner, outfile: 'server-esbuild.mjs' })
    return 'server-esbuild.mjs'
  },
  'vite for SSR': async () => {
    const rolldownOptions = { output: { entryFileNames: 'server.mjs' } }
    await viteBuild({ root: cwd, logLevel: 'warn', ssr: { noExternal: true }, build: { ssr: 'server.js', outDir: 'server-vite', rolldownOptions } })
    return 'server-vite/server.mjs'
  },
  'webpack for Node': async () => {
    const output = { path: join(cwd, 'server-webpack'), filename: 'server.cjs' }
    const compiler = webpack({ mode: 'production', target: 'node', entry: './server.js', output, externals: { bufferutil: 'commonjs bufferutil', 'utf-8-validate': 'commonjs utf-8-validate' } })
    const stats = await new Promise((resolve, reject) => compiler.run((error, stats) => (error ? reject(error) : resolve(stats))))
    if (stats.hasErrors() || stats.hasWarnings()) throw new Error(stats.toString({ all: false, errors: true, warnings: true }))
    return 'server-webpack/server.cjs'
  }
}

const runtime = createRuntime({ agent: defineAgent({ card: { name: 'Server' }, work: async () => ({ artifact: text('It works') }) }) })
const agent = await serve(runtime, { port: 0 })
try {
  for (const [name, build] of Object.entries(BUILDERS)) {
    const file = await build()
    const { stdout } = await promisify(execFile)(process.execPath, [file], { env: { ...process.env, AGENT: agent.url } })
    const answer = stdout.trim()
    console.log(`${name}: ${answer}`)
    if (answer !== EXPECTED) throw new Error(`the bundle of ${name} answered ${answer}`)
  }
} finally {
  await agent.close()
  await runtime.close()
}
