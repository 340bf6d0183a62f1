import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { randomUUID } from 'node:crypto'
import { getRequestListener } from '@hono/node-server'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import * as z from 'zod'
import { report } from './control.ts'

/*
 * The official SDK of MCP with tasks in a Map: what its handler takes for a request before anything is done. It has no
 * tasks of its own, so the answers are made here.
 */

const createdAt = new Date().toISOString()
const tasks = new Map<string, object>()

const open = () => {
  const taskId = randomUUID()
  const fields = { taskId, createdAt, lastUpdatedAt: createdAt, ttlMs: null, pollIntervalMs: 1000 }
  tasks.set(taskId, {
    ...fields,
    resultType: 'complete',
    status: 'input_required',
    statusMessage: 'Which colour?',
    inputRequests: {
      [randomUUID()]: {
        method: 'elicitation/create',
        params: {
          mode: 'form',
          message: 'Which colour?',
          requestedSchema: { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'] }
        }
      }
    }
  })
  return { ...fields, resultType: 'task', status: 'working' }
}

const handler = createMcpHandler(() => {
  const capabilities = { tools: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } }
  const server = new Server({ name: 'Bench', version: '1' }, { capabilities })
  server.setRequestHandler('tools/call', () => open() as never)
  const params = z.looseObject({ taskId: z.string().min(1) })
  server.setRequestHandler('tasks/get', { params }, ({ taskId }) => ({ ...tasks.get(taskId) }))
  return server
})
const listen = getRequestListener(request => handler.fetch(request))
const server = createServer((request, response) => void listen(request, response))
server.listen(0, '127.0.0.1', () => report((server.address() as AddressInfo).port))
