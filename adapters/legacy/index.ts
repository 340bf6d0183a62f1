import type { CallContext } from '../../runtime/access/call-context.ts'
import type { Runtime } from '../../runtime/index.ts'
import { checkOptions, TRUE_OR_FALSE, type OptionKinds } from '../../runtime/primitives/options.ts'
import { servedRuntime } from '../../runtime/runtime-options.ts'
import type { Dialect } from '../json-rpc/dispatch.ts'
import { card03, withCard03, type Card03Options } from '../v03/card.ts'
import { BARE, method03, type Method03, route03, writeEvents } from './v03-requests.ts'
import type { Calls03 } from './v03.ts'

const OPTIONS: OptionKinds<Card03Options> = { webSocketInCards: TRUE_OR_FALSE }

const VERSION = '0.3'

/**
 * A2A 0.3 over a runtime, through the official SDK's compatibility layer: JSON-RPC according to its JSON schema, and
 * REST under `/v1` in the JSON form of its proto. The first call loads the SDK. Throws TypeError if `@a2a-js/sdk` is
 * not installed, and for an unknown option.
 */
export function dialect03(given: Runtime, options: Card03Options = {}): Dialect {
  const runtime = servedRuntime(given, 'dialect03')
  checkOptions(options, OPTIONS, 'dialect03', 'dialect03(runtime, { webSocketInCards: true })')
  checkInstalled()
  let calls: Promise<Calls03> | undefined
  const load = () => (calls ??= import('./v03.ts').then(({ createCalls03 }) => createCalls03(runtime, options)))
  // A stored webhook may be due before the first call.
  for (const form of [VERSION, BARE])
    runtime.writesWebhooks(form, async (update, task) => (await import('./v03.ts')).writeWebhook03(form, update, task))
  const answer = async (method: Method03, params: unknown, call: CallContext) =>
    (await load()).answer(method, params, call)
  async function* events(method: Method03, params: unknown, call: CallContext) {
    yield* (await load()).events(method, params, call)
  }
  return {
    version: VERSION,
    method: name => {
      const method = method03(name)
      if (!method?.streaming)
        return method && { streaming: false, answer: (params, call) => answer(method, params, call) }
      return { streaming: true, events: (params, call) => events(method, params, call) }
    },
    rest: request => {
      const route = route03(request)
      if (!route) return undefined
      const { method, params, write } = route
      if (!method.streaming)
        return { streaming: false, answer: async call => write(await answer(method, params, call)) }
      return { streaming: true, events: call => writeEvents(events(method, params, call), write) }
    },
    card: card => card03(card, options),
    withCard: card => withCard03(card, options)
  }
}

function checkInstalled(): void {
  try {
    import.meta.resolve('@a2a-js/sdk')
  } catch (cause) {
    throw new TypeError('dialect03 needs the official SDK. Install it: npm install @a2a-js/sdk', { cause })
  }
}

export { dialect01, type Dialect01Options } from './v01.ts'
