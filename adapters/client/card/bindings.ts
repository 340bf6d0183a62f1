import { WEBSOCKET_BINDING } from '../../../machines/protocol/uris.ts'

/** The bindings that this client can speak, by the names that cards give them; a card may also name ours by its URI. */
export const BINDINGS = ['WEBSOCKET', 'JSONRPC', 'HTTP+JSON', 'GRPC'] as const

/** A binding that this client can speak. */
export type Binding = (typeof BINDINGS)[number]

/** The binding that a name or URI stands for; `undefined` for those that this client does not speak. Case does not count. */
export function bindingNamed(name: string): Binding | undefined {
  if (name === WEBSOCKET_BINDING) return 'WEBSOCKET'
  return BINDINGS.find(binding => binding === name.toUpperCase())
}

/** The bindings of the option of that name. Throws TypeError for one that this client does not speak, and for none. */
export function readBindings(names: readonly string[] | undefined): readonly Binding[] | undefined {
  if (names?.length === 0) throw new TypeError('bindings has to name at least one binding. Leave it out to use any.')
  return names?.map(name => {
    const binding = bindingNamed(name)
    if (binding) return binding
    throw new TypeError(`${JSON.stringify(name)} is no binding that this client speaks. Those are ${BINDINGS.join(', ')}.`)
  })
}
