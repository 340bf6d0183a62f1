import { BinaryWriter } from '@bufbuild/protobuf/wire'
import { Metadata, type UntypedServiceImplementation } from '@grpc/grpc-js'
import { isObject } from '../../machines/protocol/codec/json.ts'
import {
  type A2AError,
  BAD_REQUEST,
  ERROR_INFO,
  ERRORS,
  type FieldViolation,
  RETRY_INFO
} from '../../machines/protocol/errors.ts'
import { checkArgument } from '../../runtime/primitives/options.ts'
import { sdkFailureOf, GRPC_STATUSES } from '../a2a-sdk/sdk-objects.ts'

/** A call of gRPC. Its request object reaches the SDK's request handler unchanged. */
interface Call {
  readonly request: object
  emit(event: string, ...values: unknown[]): boolean
}

type Callback = (error: unknown, ...answer: unknown[]) => void
type Method = (call: Call, callback?: Callback) => void

/**
 * Wraps the official gRPC service (`grpcService`): errors get the status and all details of taskchart's own servers:
 * ErrorInfo, BadRequest and RetryInfo. On its own, the official service sends UNKNOWN, or no details, for errors that
 * are not of the SDK's classes.
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

function mapped({ request }: Call, thrown: unknown): unknown {
  const error = sdkFailureOf(request)
  return error ? statusOf(error) : thrown
}

/** The status of an error, which ends a call. */
export function statusOf(error: A2AError): object {
  const code = GRPC_STATUSES.indexOf(ERRORS[error.code].grpc)
  const metadata = new Metadata()
  metadata.set('grpc-status-details-bin', statusDetails(error, code))
  return { code, details: error.message, metadata }
}

/** Writes the fields of a message. */
type Write = (writer: BinaryWriter) => void

/** A binary `google.rpc.Status` with all details of an error (§10.6), which gRPC sends as `grpc-status-details-bin`. */
function statusDetails(error: A2AError, status: number): Buffer {
  const { message, violations, retryAfterMs } = error
  const [info] = error.details
  const details: Write[] = [
    any(ERROR_INFO, errorInfo(String(info?.['reason']), String(info?.['domain']), error.metadata))
  ]
  if (violations.length > 0) details.push(any(BAD_REQUEST, badRequest(violations)))
  if (retryAfterMs !== undefined) details.push(any(RETRY_INFO, retryInfo(Math.ceil(Math.max(0, retryAfterMs)))))
  const writer = new BinaryWriter().uint32(tag(1, 0)).int32(status).uint32(tag(2)).string(message)
  for (const detail of details) nested(3, detail)(writer)
  return Buffer.from(writer.finish())
}

function errorInfo(reason: string, domain: string, metadata: Readonly<Record<string, string>>): Write {
  return writer => {
    texts(reason, domain)(writer)
    for (const [name, value] of Object.entries(metadata)) nested(3, texts(name, value))(writer)
  }
}

function badRequest(violations: readonly FieldViolation[]): Write {
  return writer => {
    for (const { field, description } of violations) nested(1, texts(field, description))(writer)
  }
}

/** A `google.protobuf.Duration`: seconds and nanoseconds. */
function retryInfo(milliseconds: number): Write {
  return nested(1, writer => {
    writer
      .uint32(tag(1, 0))
      .int64(Math.floor(milliseconds / 1000))
      .uint32(tag(2, 0))
      .int32((milliseconds % 1000) * 1e6)
  })
}

function any(type: string, message: Write): Write {
  return writer => {
    writer.uint32(tag(1)).string(type)
    nested(2, message)(writer)
  }
}

/** Writes fields 1 and 2 as strings. */
function texts(first: string, second: string): Write {
  return writer => void writer.uint32(tag(1)).string(first).uint32(tag(2)).string(second)
}

function nested(field: number, write: Write): Write {
  return writer => {
    writer.uint32(tag(field)).fork()
    write(writer)
    writer.join()
  }
}

/** The key of a field: its number and wire type; 2 is length-delimited. */
function tag(field: number, type = 2): number {
  return (field << 3) | type
}
