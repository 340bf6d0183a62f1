import { WEBSOCKET_BINDING } from '../../../machines/protocol/uris.ts'
import type { NativeVersion } from '../../../machines/protocol/versions.ts'

/** The bindings of this client, by their names in cards. A card may also name the WebSocket binding by its URI. */
export const BINDINGS = ['WEBSOCKET', 'JSONRPC', 'HTTP+JSON', 'GRPC'] as const

export type Binding = (typeof BINDINGS)[number]

/** The binding for a name or URI, in any case; `undefined` for one that this client does not support. */
export function bindingNamed(name: string): Binding | undefined {
  if (name === WEBSOCKET_BINDING) return 'WEBSOCKET'
  return BINDINGS.find(binding => binding === name.toUpperCase())
}

/** Validates the option `bindings`. Throws TypeError for an unknown binding and for an empty list. */
export function readBindings(names: readonly string[] | undefined): readonly Binding[] | undefined {
  if (names?.length === 0) throw new TypeError('bindings has to name at least one binding. Leave it out to use any.')
  return names?.map(name => {
    const binding = bindingNamed(name)
    if (binding) return binding
    throw new TypeError(`${JSON.stringify(name)} is not a binding of this client. Use ${BINDINGS.join(', ')}.`)
  })
}

/** One interface of an agent that this client can use. Over WebSocket it does not support 0.3. */
export type UsableInterface = (
  | { readonly version: NativeVersion; readonly binding: Binding }
  | { readonly version: '0.3'; readonly binding: Exclude<Binding, 'WEBSOCKET'> }
) & {
  readonly url: string
  /** The tenant that the card requires in every request; `undefined` if it names none. */
  readonly tenant: string | undefined
}
