import { parseArgs, type ParseArgsConfig } from 'node:util'
import { usageError } from './command.ts'

type Options = NonNullable<ParseArgsConfig['options']>
type Values<T extends Options> = ReturnType<typeof parseArgs<{ options: T; allowPositionals: true }>>['values']
type Each<Names extends readonly string[]> = { [Index in keyof Names]: string }

/**
 * Parses a command's options, and one positional argument for each of `names`. Throws a usage error for an unknown option, a
 * missing value, and a wrong number of positionals.
 */
export function readArguments<const T extends Options, const Names extends readonly string[]>(
  args: readonly string[],
  options: T,
  names: Names
): { values: Values<T>; positionals: Each<Names> } {
  const { values, positionals } = readOptions(args, options)
  if (positionals.length < names.length) throw usageError(`${names[positionals.length]} is missing.`)
  if (positionals.length > names.length) {
    throw usageError(`${JSON.stringify(positionals[names.length])} is one argument too many. Put quotes around text with spaces.`)
  }
  return { values, positionals: positionals as unknown as Each<Names> }
}

/** Parses a command's options and any number of positionals. Throws a usage error for an unknown option or a missing value. */
export function readOptions<const T extends Options>(args: readonly string[], options: T): { values: Values<T>; positionals: string[] } {
  try {
    return parseArgs<{ args: string[]; options: T; allowPositionals: true }>({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    throw usageError((error as TypeError).message)
  }
}
