import type { AgentCard } from '@a2a-js/sdk'
import { DefaultRequestHandler, InMemoryTaskStore, type A2ARequestHandler, type TaskStore } from '@a2a-js/sdk/server'
import { BenchExecutor } from './sdk-executor.ts'

/**
 * The official SDK's request handler as its README sets it up: with defaults, in memory unless another store is given.
 */
export function sdkHandler(store: TaskStore = new InMemoryTaskStore()): A2ARequestHandler {
  const card: AgentCard = {
    name: 'Bench',
    description: '',
    version: '1.0.0',
    supportedInterfaces: [{ url: 'http://127.0.0.1/', protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }],
    capabilities: { streaming: true, extensions: [] },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [],
    provider: undefined,
    securitySchemes: {},
    securityRequirements: [],
    signatures: []
  }
  return new DefaultRequestHandler(card, store, new BenchExecutor())
}
