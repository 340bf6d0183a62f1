import type { Cell } from '../../rows/damage.ts'

/** The types of columns in a list of rows. */
export type ColumnType = 'bool' | 'int4' | 'int8' | 'float8' | 'text'

/** The object ids of the types, which are fixed. */
const OIDS: Readonly<Record<ColumnType, number>> = { bool: 16, int8: 20, int4: 23, text: 25, float8: 701 }

const SIZES: Readonly<Record<Exclude<ColumnType, 'text'>, number>> = { bool: 1, int4: 4, int8: 8, float8: 8 }

/** Bytes before the elements: dimensions, whether there is a null, type, length, and first index. */
const HEADER_BYTES = 20
const LENGTH_BYTES = 4

/**
 * A one-dimensional array in PostgreSQL's binary form. `pg` sends a buffer as it is, while it would quote and escape an array: for bodies of JSON
 * that costs several times as much. Null for no values.
 */
export function binaryArray(type: ColumnType, values: readonly Cell[]): Buffer | null {
  if (values.length === 0) return null
  const lengths = values.map(value =>
    value === null ? -1 : type === 'text' ? Buffer.byteLength(String(value)) : SIZES[type]
  )
  const bytes = lengths.reduce((sum, length) => sum + LENGTH_BYTES + Math.max(length, 0), HEADER_BYTES)
  const buffer = Buffer.allocUnsafe(bytes)
  buffer.writeInt32BE(1, 0)
  buffer.writeInt32BE(lengths.includes(-1) ? 1 : 0, 4)
  buffer.writeInt32BE(OIDS[type], 8)
  buffer.writeInt32BE(values.length, 12)
  buffer.writeInt32BE(1, 16)
  let at = HEADER_BYTES
  for (const [index, value] of values.entries()) {
    const length = lengths[index] as number
    buffer.writeInt32BE(length, at)
    at += LENGTH_BYTES
    if (length < 0) continue
    write(buffer, type, value, at)
    at += length
  }
  return buffer
}

function write(buffer: Buffer, type: ColumnType, value: Cell, at: number): void {
  if (type === 'text') buffer.write(String(value), at)
  else if (type === 'bool') buffer[at] = value === true ? 1 : 0
  else if (type === 'int4') buffer.writeInt32BE(Number(value), at)
  else if (type === 'float8') buffer.writeDoubleBE(Number(value), at)
  else writeInt8(buffer, Number(value), at)
}

/** A safe integer as 8 bytes. Two writes take less time than a bigint. */
function writeInt8(buffer: Buffer, value: number, at: number): void {
  buffer.writeInt32BE(Math.floor(value / 2 ** 32), at)
  buffer.writeUInt32BE(value >>> 0, at + 4)
}
