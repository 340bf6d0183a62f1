import type { WebhookSender } from '../../runtime/ports/webhook-sender.ts'
import { checkOptions, functionFor, TRUE_OR_FALSE, type OptionKinds } from '../../runtime/primitives/options.ts'
import { post } from './post.ts'
import { checkedAddress, parsedAddress, systemResolve, type AddressRules } from './webhook-address.ts'

/** The options of webhooks. All are optional. */
export interface WebhooksOptions {
  /** Also accepts receivers on this machine, including `http:`: for development and tests. Default `false`. */
  readonly allowLoopback?: boolean
  /** Resolves a host name to all of its IP addresses. Default: the system's resolver. */
  readonly resolve?: (host: string) => Promise<readonly string[]>
}

const OPTIONS: OptionKinds<WebhooksOptions> = {
  allowLoopback: TRUE_OR_FALSE,
  resolve: functionFor('a function that gives the IP addresses of a host')
}

/**
 * Delivers webhooks over HTTP, for `createRuntime({ push: webhooks() })`. Accepts only `https:` URLs of the public
 * internet: the name is resolved at registration and before each post, every address is checked, and only those are
 * dialled. Redirects are refused, and little of an answer is read. Throws TypeError for an unknown option.
 */
export function webhooks(options: WebhooksOptions = {}): WebhookSender {
  checkOptions(options, OPTIONS, 'webhooks', 'webhooks({ allowLoopback: true })')
  const { allowLoopback = false, resolve = systemResolve } = options
  const rules: AddressRules = { allowLoopback, resolve }
  return {
    faultOf: async (url, signal) => {
      const parsed = parsedAddress(url, rules)
      if (typeof parsed === 'string') return parsed
      // A name that cannot be resolved now may be resolvable at the time of a delivery.
      const checked = await unlessAborted(checkedAddress(url, rules), signal).catch(() => undefined)
      return typeof checked === 'string' ? checked : undefined
    },
    post: async (given, signal) => {
      try {
        const checked = await unlessAborted(checkedAddress(given.url, rules), signal)
        return typeof checked === 'string'
          ? { failure: `the address ${checked}`, isRefused: true }
          : await post(checked, given, signal)
      } catch {
        return { failure: 'the host name cannot be resolved' }
      }
    }
  }
}

/** A look-up cannot be aborted, but need not be awaited. */
function unlessAborted<T>(looked: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(new TypeError('given up'))
    if (signal.aborted) return abort()
    signal.addEventListener('abort', abort, { once: true })
    looked.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
