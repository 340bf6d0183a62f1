import { A2AError } from '../../machines/protocol/errors.ts'
import { OPERATIONS, type OperationMethod, type OperationName } from '../../machines/protocol/operations.ts'
import { normaliseVersion, PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import type { CallContext } from '../../runtime/access/call-context.ts'
import { counted } from '../../runtime/access/quotas.ts'
import { checkVersion } from '../../runtime/operations/admission.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { Dialect } from '../legacy/dialect.ts'
import type { Method } from './method.ts'
import { unstatedMethod } from './unstated-method.ts'

/** The operations of A2A 1.0 by their JSON-RPC methods (§5.3). */
export type Operations = Readonly<Record<OperationMethod, Method>>

/** Gives the method of a name for a request of an `A2A-Version`; `undefined` if there is none. */
export type Methods = (name: string, version: string) => Method | undefined

/** The operations of a runtime as methods. */
export function operationsOf(runtime: Runtime): Operations {
  const calls = runtime as unknown as Record<OperationName, (params: unknown, call: CallContext) => unknown>
  const methods = Object.entries(OPERATIONS).map(([method, { name, streaming }]) => {
    const call = (params: unknown, call: CallContext) => calls[name](params, call)
    return [method, streaming ? { streaming, events: call } : { streaming, answer: call }]
  })
  return Object.fromEntries(methods) as Operations
}

/**
 * What clients may call by name: the operations, and for requests of an older version the methods of its dialect. One that
 * names no version is older: its method tells of which dialect it is.
 */
export function methodsOf(runtime: Runtime, dialects: readonly Dialect[] = []): Methods {
  const operations = new Map<string, Method>(Object.entries(operationsOf(runtime)))
  const older = new Map(dialects.map(dialect => [dialect.version, dialect]))
  return (name, version) => {
    const asked = normaliseVersion(version) ?? ''
    const dialect = older.get(asked)
    const unstated = version.trim() === '' ? unstatedMethod(dialects, name) : undefined
    return operations.get(name) ?? unstated ?? (dialect ? dialect.method(name) : asked === PROTOCOL_VERSION ? undefined : unserved(runtime, version))
  }
}

/** What every name is in a version that is not served: it is the version that is refused. */
function unserved({ settings: { countStray } }: Runtime, version: string): Method {
  return { streaming: false, answer: async (params, call) => counted(countStray, call, params, () => checkVersion(version)) }
}

/** The error for a name that is no method. */
export function noSuchMethod(name: string): A2AError {
  return new A2AError('MethodNotFound', `There is no method ${JSON.stringify(name.slice(0, 64))} in A2A ${PROTOCOL_VERSION}.`)
}
