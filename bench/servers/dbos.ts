import { createServer, type IncomingMessage } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { WORK_STEPS } from '../errands.ts'
import { report } from './control.ts'

/** The part of DBOS that is used. */
interface Dbos {
  setConfig(config: object): void
  registerWorkflow<Input>(run: (input: Input) => Promise<string>, config: object): (input: Input) => Promise<string>
  runStep(run: () => Promise<string>, config: { readonly name: string }): Promise<string>
  launch(): Promise<void>
}

/** The folder with the packages of DBOS, and the URL of a PostgreSQL database. */
const { engine, database } = JSON.parse(process.argv[2] ?? '') as { readonly engine: string; readonly database: string }
const { DBOS } = createRequire(join(engine, 'package.json'))('@dbos-inc/dbos-sdk') as { readonly DBOS: Dbos }

DBOS.setConfig({ name: 'bench', systemDatabaseUrl: database, logLevel: 'error' })
const run = DBOS.registerWorkflow(
  async (_message: unknown) => {
    const begun = await DBOS.runStep(WORK_STEPS.begin, { name: 'begin' })
    return DBOS.runStep(() => WORK_STEPS.end(begun), { name: 'end' })
  },
  { name: 'work' }
)
await DBOS.launch()

/** Runs the workflow with the body of a request. */
async function answer(request: IncomingMessage): Promise<string> {
  let body = ''
  for await (const text of request.setEncoding('utf8')) body += String(text)
  return JSON.stringify(await run(JSON.parse(body)))
}

const server = createServer((request, response) => {
  answer(request).then(
    text => response.setHeader('content-type', 'application/json').end(text),
    error => response.writeHead(500).end(String(error))
  )
})
server.listen(0, '127.0.0.1', () => report((server.address() as AddressInfo).port))
