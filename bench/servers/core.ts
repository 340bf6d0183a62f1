import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { JsonRpcTransportHandler, ServerCallContext, UnauthenticatedUser } from '@a2a-js/sdk/server'
import { report } from './control.ts'
import { sdkDatabase } from './sdk-database.ts'
import { sdkHandler } from './sdk-handler.ts'

const { database } = JSON.parse(process.argv[2] ?? '{}') as { readonly database?: string }
const handler = new JsonRpcTransportHandler(
  sdkHandler(database === undefined ? undefined : await sdkDatabase(database))
)

/** Reads the body, has the SDK's JSON-RPC core answer it, and writes JSON or server-sent events: nothing else. */
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let body = ''
  for await (const text of request.setEncoding('utf8')) body += String(text)
  const context = new ServerCallContext({
    user: new UnauthenticatedUser(),
    requestedVersion: String(request.headers['a2a-version'])
  })
  const result = await handler.handle(body, context)
  if (!(Symbol.asyncIterator in result)) {
    response.setHeader('content-type', 'application/json').end(JSON.stringify(result))
    return
  }
  response.setHeader('content-type', 'text/event-stream')
  for await (const event of result) response.write(`data: ${JSON.stringify(event)}\n\n`)
  response.end()
}

const server = createServer((request, response) => {
  answer(request, response).catch(error => response.destroy(error instanceof Error ? error : undefined))
})
server.listen(0, '127.0.0.1', () => report((server.address() as AddressInfo).port))
