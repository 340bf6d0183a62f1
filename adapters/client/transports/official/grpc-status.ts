import { BAD_REQUEST, ERROR_INFO, RETRY_INFO } from '../../../../machines/protocol/errors.ts'
import type { Wire } from './peers.ts'

/** The fields of a protobuf message by number, in order: bytes or integers. */
type Fields = ReadonlyMap<number, readonly (Uint8Array | bigint)[]>
type Read = (message: Uint8Array) => Fields

/**
 * Converts the details of a binary `google.rpc.Status`, which gRPC sends as `grpc-status-details-bin`, to their JSON form. A detail
 * that A2A does not use (§5.4) keeps only its `@type`. Throws for a malformed message.
 */
export function detailsIn(wire: Wire, status: Uint8Array): object[] {
  const read: Read = message => fieldsIn(wire, message)
  return allBytes(read(status), 3).map(detail => {
    const fields = read(detail)
    const type = text(fields, 1)
    return { '@type': type, ...READERS.get(type)?.(read(bytes(fields, 2)), read) }
  })
}

const READERS = new Map<string, (fields: Fields, read: Read) => object>([
  [
    ERROR_INFO,
    (fields, read) => ({
      reason: text(fields, 1),
      domain: text(fields, 2),
      metadata: Object.fromEntries(pairs(fields, 3, read))
    })
  ],
  [
    BAD_REQUEST,
    (fields, read) => ({
      fieldViolations: pairs(fields, 1, read).map(([field, description]) => ({ field, description }))
    })
  ],
  [RETRY_INFO, (fields, read) => ({ retryDelay: duration(read(bytes(fields, 1))) })]
])

function fieldsIn({ BinaryReader, WireType }: Wire, message: Uint8Array): Fields {
  const fields = new Map<number, (Uint8Array | bigint)[]>()
  const reader = new BinaryReader(message)
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag()
    const values = fields.get(field) ?? []
    fields.set(field, values)
    if (type === WireType.LengthDelimited) values.push(reader.bytes())
    else if (type === WireType.Varint) values.push(BigInt(reader.int64()))
    else reader.skip(type)
  }
  return fields
}

function allBytes(fields: Fields, field: number): Uint8Array[] {
  return (fields.get(field) ?? []).filter(value => value instanceof Uint8Array)
}

/** Messages whose first two fields are strings: map entries and field violations. */
function pairs(fields: Fields, field: number, read: Read): [string, string][] {
  return allBytes(fields, field)
    .map(read)
    .map(pair => [text(pair, 1), text(pair, 2)])
}

function bytes(fields: Fields, field: number): Uint8Array {
  return allBytes(fields, field).at(-1) ?? new Uint8Array()
}

function text(fields: Fields, field: number): string {
  return new TextDecoder().decode(bytes(fields, field))
}

function duration(fields: Fields): string {
  const [seconds, nanos] = [1, 2].map(field => Number(fields.get(field)?.at(-1) ?? 0))
  return `${Number(seconds) + Number(nanos) / 1e9}s`
}
