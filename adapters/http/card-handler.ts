import type { IncomingMessage, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import type { AgentInterface } from '../../machines/protocol/card.ts'
import { checkOptions, type OptionKinds } from '../../runtime/primitives/options.ts'
import { checkRuntime } from '../../runtime/runtime-options.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { checkInterfaces, INTERFACES } from '../entry/interfaces.ts'
import { DIALECTS, type Dialect } from '../json-rpc/dialect.ts'
import { CardAnswers } from './agent-card.ts'
import { termsOf } from './call.ts'
import { notAllowed } from './rest.ts'

/** The content of a card that depends on how the app serves the agent. */
export interface CardHandlerOptions {
  /** Every interface of the agent, the preferred one first. */
  readonly interfaces: readonly AgentInterface[]
  /** Older versions of A2A whose cards are served too: `[dialect03(runtime)]` of `taskchart/legacy`. Default none. */
  readonly dialects?: readonly Dialect[]
}

const OPTIONS: OptionKinds<CardHandlerOptions> = { interfaces: INTERFACES, dialects: DIALECTS }

/** A fetch handler that is also a listener for node:http and Express. */
export interface CardHandler {
  (request: Request): Promise<Response>
  (request: IncomingMessage, response: ServerResponse): Promise<void>
}

/**
 * The agent's card (§8.2) for an app with its own routing, such as one with the servers of the official SDK: mount it at
 * `/.well-known/agent-card.json`. Like the cards of `serve`, it is signed if the runtime signs, and cacheable: it has
 * `Cache-Control`, `ETag` and `Last-Modified`. It ignores path and Host. Throws TypeError for invalid `interfaces`.
 */
export function cardHandler(runtime: Runtime, options: CardHandlerOptions): CardHandler {
  checkRuntime(runtime, 'cardHandler')
  checkOptions(options, OPTIONS, 'cardHandler', 'cardHandler(runtime, { interfaces })')
  const { interfaces, dialects = [] } = options
  if (!interfaces)
    throw new TypeError(`cardHandler needs interfaces, ${INTERFACES[1]}: a mounted card does not know its address.`)
  checkInterfaces(interfaces)
  const cards = new CardAnswers(runtime, dialects)
  const answer = async (request: Request): Promise<Response> => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return notAllowed(['GET', 'HEAD'], {})
    const { version } = termsOf(request, new URL(request.url).searchParams, [])
    return cards.card(request, version, interfaces, {})
  }
  const listener = getRequestListener(answer, { overrideGlobalObjects: false })
  const handler = (request: Request | IncomingMessage, response?: ServerResponse) =>
    response && 'rawHeaders' in request ? listener(request, response) : answer(request as Request)
  return handler as CardHandler
}
