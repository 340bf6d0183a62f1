import { decode } from '../../machines/protocol/codec/decode.ts'
import { checkJson, type JsonLimits } from '../../machines/protocol/codec/json.ts'
import type { Schema } from '../../machines/protocol/codec/values.ts'
import { invalidParams } from '../../machines/protocol/errors.ts'

/** Checks the parameters of an older version's method. Throws InvalidParams that names the fields as that version does. */
export function checkedParams<Params>(schema: Schema<Params>, given: unknown, limits: JsonLimits): Params {
  const violation = checkJson(given, limits)
  if (violation) throw invalidParams(violation)
  return decode(schema, given)
}
