import { Metadata, type UntypedServiceImplementation } from '@grpc/grpc-js'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { ERRORS, type A2AError } from '../../machines/protocol/errors.ts'
import { checkArgument } from '../../runtime/primitives/options.ts'
import { failureOf, GRPC_STATUSES } from '../a2a-sdk/sdk-errors.ts'
import { statusDetails } from './status-details.ts'

/** A call of gRPC. Its request object reaches the SDK's request handler unchanged. */
interface Call {
  readonly request: object
  emit(event: string, ...values: unknown[]): boolean
}

type Callback = (error: unknown, ...answer: unknown[]) => void
type Method = (call: Call, callback?: Callback) => void

/**
 * Wraps the official gRPC service (`grpcService`): errors get the status and all details of taskchart's own servers: ErrorInfo, BadRequest
 * and RetryInfo. On its own, the official service sends UNKNOWN, or no details, for errors that are not of the SDK's classes.
 */
export function grpcErrors<Service extends object>(service: Service): Service & UntypedServiceImplementation {
  checkArgument(
    service,
    [isObject, 'an implementation of the service'],
    'grpcErrors(grpcService({ requestHandler, userBuilder }))'
  )
  const wrapped = Object.entries(service).map(([name, method]: [string, Method]) => [name, withErrors(method)])
  return Object.fromEntries(wrapped) as Service & UntypedServiceImplementation
}

function withErrors(method: Method): Method {
  return (call, callback) => {
    if (callback) return method(call, (error, ...answer) => callback(error && mapped(call, error), ...answer))
    const emit = call.emit.bind(call)
    call.emit = (event, ...values) =>
      event === 'error' ? emit(event, mapped(call, values[0])) : emit(event, ...values)
    method(call)
  }
}

function mapped({ request }: Call, told: unknown): unknown {
  const error = failureOf(request)
  return error ? statusOf(error) : told
}

/** The status of an error, which ends a call. */
function statusOf(error: A2AError): object {
  const code = GRPC_STATUSES.indexOf(ERRORS[error.code].grpc)
  const metadata = new Metadata()
  metadata.set('grpc-status-details-bin', statusDetails(error, code))
  return { code, details: error.message, metadata }
}
