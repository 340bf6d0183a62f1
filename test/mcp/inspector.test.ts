import { join } from 'node:path'
import t from 'tap'
import agent from './agent.ts'
import { NO_MCP_PACKAGES, runProgram, servedAgent } from './packages.ts'

const COMMAND = [process.execPath, join('dist', 'adapters', 'cli', 'bin.js'), 'mcp']

interface Printed {
  readonly result: {
    readonly tools?: readonly { readonly name: string }[]
    readonly content?: readonly { readonly text: string }[]
  }
}

/** Runs a method with Inspector's command. Without errors it prints JSON. */
async function inspect(target: readonly string[], era: string, ...method: readonly string[]) {
  const args = ['--cli', ...target, '--protocol-era', era, '--format', 'json', '--method', ...method]
  const { code, stdout, stderr } = await runProgram('inspector', ...args)
  return { code, stderr, result: (JSON.parse(stdout) as Printed).result }
}

for (const era of ['modern', 'legacy'])
  await t.test(`Inspector's command lists and calls over HTTP (${era})`, { skip: NO_MCP_PACKAGES }, async t => {
    const url = await servedAgent(t, agent)
    const http = [url, '--transport', 'http']
    const listed = await inspect(http, era, 'tools/list', '--strict')
    t.match(listed, { code: 0, stderr: /0 errors/ }, 'no host refuses the schemas')
    t.ok(listed.result.tools?.some(({ name }) => name === 'task_followup'))
    const called = await inspect(http, era, 'tools/call', '--tool-name', 'slow_compute', '--tool-arg', 'label=pi')
    t.match(called, { code: 0, result: { content: [{ text: 'computed pi' }, { text: /state: completed/ }] } })
    t.match(await inspect(http, era, 'tools/call', '--tool-name', 'failing_job'), { code: 5 })
  })

for (const era of ['modern', 'legacy'])
  await t.test(`Inspector's command starts the agent, lists and calls (${era})`, { skip: NO_MCP_PACKAGES }, async t => {
    const program = [...COMMAND, 'examples/sailboat.ts']
    t.match(await inspect(program, era, 'tools/list', '--strict'), {
      code: 0,
      result: { tools: [{ name: 'draw' }, { name: 'task_followup' }] }
    })
    const called = await inspect(program, era, 'tools/call', '--tool-name', 'draw', '--tool-arg', 'message=hello')
    t.match(called, { code: 0, result: { content: [{ text: /What shall I draw\?/ }] } })
  })
