import type { OperationMethod } from '../../../machines/protocol/operations.ts'

/** How what A2A 1.0 says is said in a version. */
export interface Translation {
  readonly extensionsHeader: string
  method(operation: OperationMethod): string
  params(operation: OperationMethod, params: object): unknown
  /** What an operation gives, or one event of its stream. */
  result(operation: OperationMethod, result: unknown): unknown
}

/** A2A 1.0. */
export const asItIs: Translation = { extensionsHeader: 'a2a-extensions', method: operation => operation, params: (_, params) => params, result: (_, result) => result }
