import { A2AError, type FieldViolation } from '../../machines/protocol/errors.ts'

/** The error for parameters of which one field is wrong. */
export function invalidParams(violation: FieldViolation): A2AError {
  return new A2AError('InvalidParams', `Invalid parameters: ${violation.field} ${violation.description}`, { violations: [violation] })
}
