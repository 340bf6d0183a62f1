import { BinaryWriter } from '@bufbuild/protobuf/wire'
import {
  BAD_REQUEST,
  ERROR_INFO,
  RETRY_INFO,
  type A2AError,
  type FieldViolation
} from '../../machines/protocol/errors.ts'

/** Writes the fields of a message. */
type Write = (writer: BinaryWriter) => void

/** A binary `google.rpc.Status` with all details of an error (§10.6), which gRPC sends as `grpc-status-details-bin`. */
export function statusDetails(error: A2AError, status: number): Buffer {
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
