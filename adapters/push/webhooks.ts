import type { WebhookSender } from '../../runtime/ports/webhook-sender.ts'
import { checkOptions, functionFor, TRUE_OR_FALSE, type OptionKinds } from '../../runtime/primitives/options.ts'
import { post } from './post.ts'
import { checkedAddress, parsedAddress, systemResolve, type AddressRules } from './webhook-address.ts'

/** How webhooks are reached. Nothing has to be given. */
export interface WebhooksOptions {
  /** Also takes receivers on this machine, by `http:` too: for development and tests. Default `false`. */
  readonly allowLoopback?: boolean
  /** Gives every IP address of a host name, in place of the system's look-up. */
  readonly resolve?: (host: string) => Promise<readonly string[]>
}

const OPTIONS: OptionKinds<WebhooksOptions> = { allowLoopback: TRUE_OR_FALSE, resolve: functionFor('a function that gives the IP addresses of a host') }

export type { WebhookAnswer, WebhookBody, WebhookPost, WebhookSender, WebhookBodyWriter } from '../../runtime/ports/webhook-sender.ts'

/**
 * Tells webhooks by HTTP, for `createRuntime({ push: webhooks() })`. Only `https:` addresses of the public internet are
 * taken: the name is looked up when it is registered and again before each post, every address that it has is checked, and
 * only those are dialled. Redirects are refused, and little of an answer is read. Throws TypeError for an unknown option.
 */
export function webhooks(options: WebhooksOptions = {}): WebhookSender {
  checkOptions(options, OPTIONS, 'webhooks', 'webhooks({ allowLoopback: true })')
  const { allowLoopback = false, resolve = systemResolve } = options
  const rules: AddressRules = { allowLoopback, resolve }
  return {
    faultOf: async (url, signal) => {
      const parsed = parsedAddress(url, rules)
      if (typeof parsed === 'string') return parsed
      // A name that cannot be looked up now may be found when there is something to tell.
      const checked = await unlessAborted(checkedAddress(url, rules), signal).catch(() => undefined)
      return typeof checked === 'string' ? checked : undefined
    },
    post: async (given, signal) => {
      try {
        const checked = await unlessAborted(checkedAddress(given.url, rules), signal)
        return typeof checked === 'string' ? { failure: `the address ${checked}`, isRefused: true } : await post(checked, given, signal)
      } catch {
        return { failure: 'the name of the host cannot be looked up' }
      }
    }
  }
}

/** A look-up cannot be stopped, but need not be waited for. */
function unlessAborted<T>(looked: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(new TypeError('given up'))
    if (signal.aborted) return abort()
    signal.addEventListener('abort', abort, { once: true })
    looked.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
