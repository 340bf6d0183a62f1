import { parseArgs, type ParseArgsConfig } from 'node:util'
import type { Authenticate } from '../../runtime/access/authentication.ts'
import { apiKey, LONG_KEY, SHORTEST_KEY } from '../auth/schemes.ts'
import { usageError } from './command.ts'
import { didYouMean } from './text/format.ts'

type Options = NonNullable<ParseArgsConfig['options']>
type Values<T extends Options> = ReturnType<typeof parseArgs<{ options: T; allowPositionals: true }>>['values']
type Each<Names extends readonly string[]> = { [Index in keyof Names]: string }

/**
 * Parses a command's options, and one positional argument for each of `names`. Throws a usage error for an unknown
 * option, a missing value, and a wrong number of positionals.
 */
export function readArguments<const T extends Options, const Names extends readonly string[]>(
  args: readonly string[],
  options: T,
  names: Names
): { values: Values<T>; positionals: Each<Names> } {
  const { values, positionals } = readOptions(args, options)
  return { values, positionals: readPositionals(positionals, names) }
}

/** One positional argument for each of `names`. Throws a usage error for a wrong number of them. */
export function readPositionals<const Names extends readonly string[]>(
  positionals: readonly string[],
  names: Names
): Each<Names> {
  if (positionals.length < names.length) throw usageError(`${names[positionals.length]} is missing.`)
  if (positionals.length > names.length) {
    throw usageError(
      `${JSON.stringify(positionals[names.length])} is one argument too many. Put quotes around text with spaces.`
    )
  }
  return positionals as unknown as Each<Names>
}

/** One argument, in the order of the command line: an option with its long name, or a positional. */
export type ArgumentToken = Pick<OptionToken, 'name' | 'value'> | { readonly name?: undefined; readonly value: string }

/**
 * Parses a command's options and any number of positionals. Throws a usage error for an unknown option or a missing
 * value.
 */
export function readOptions<const T extends Options>(
  args: readonly string[],
  options: T
): { values: Values<T>; positionals: string[]; tokens: ArgumentToken[] } {
  const { tokens } = parseArgs({ args: [...args], options, allowPositionals: true, strict: false, tokens: true })
  const given = new Set<string>()
  for (const token of tokens) {
    if (token.kind !== 'option') continue
    checkOption(token, options)
    const option = options[token.name]
    if (given.has(token.name) && option?.type === 'string' && !option.multiple)
      throw usageError(`${token.rawName} was given twice. Give it once.`)
    given.add(token.name)
  }
  const { values, positionals } = parseArgs<{ args: string[]; options: T; allowPositionals: true }>({
    args: [...args],
    options,
    allowPositionals: true
  })
  const ordered = tokens.flatMap((token): ArgumentToken[] => (token.kind === 'option-terminator' ? [] : [token]))
  return { values, positionals, tokens: ordered }
}

/**
 * The value of an option that has more than one name, and the name that was used. Throws a usage error for two of them.
 */
export function readAlias<Value>(
  values: Readonly<Record<string, Value | undefined>>,
  names: readonly string[]
): Value | undefined {
  const [first, second] = names.filter(name => values[name] !== undefined)
  if (second !== undefined) throw usageError(`--${first} and --${second} are the same option. Give one of them.`)
  return first === undefined ? undefined : values[first]
}

/** The options for the form of results. */
export const OUTPUT_OPTIONS = {
  output: { type: 'string', short: 'o' },
  stream: { type: 'boolean' },
  json: { type: 'boolean' }
} as const

/** The form of results: text, one document of JSON, or lines of JSON. */
export type OutputForm = 'text' | 'json' | 'lines'

/** The form that options choose. `--json` is short for `-o json --stream`. */
export function readOutput(values: {
  readonly output?: string | undefined
  readonly stream?: boolean | undefined
  readonly json?: boolean | undefined
}): OutputForm {
  const { output, stream, json } = values
  if (output !== undefined && output !== 'text' && output !== 'json')
    throw usageError(`--output takes text or json, not ${JSON.stringify(output)}.`)
  if (json && output === 'text') throw usageError('--json and --output text exclude each other.')
  if (json || (output === 'json' && stream)) return 'lines'
  return output ?? 'text'
}

/**
 * Whether arguments, which may be wrong, ask for errors as JSON on stdout: by `-o json`, or by `--json` if that
 * `isShort` for it.
 */
export function asksForJson(args: readonly string[], isShort: boolean): boolean {
  const options = args.includes('--') ? args.slice(0, args.indexOf('--')) : args
  return options.some(
    (arg, i) =>
      (arg === '--json' && isShort) ||
      /^(?:-o=?json|--output=json)$/.test(arg) ||
      (/^(?:-o|--output)$/.test(arg) && options[i + 1] === 'json')
  )
}

/** Whether an argument is the URL of an agent or a server, not a file or an id. */
export function isUrl(text: string): boolean {
  return /^(?:http|ws)s?:\/\//i.test(text)
}

/**
 * Throws a usage error for a URL with a user or a password: it would appear in messages, and no request would carry it.
 */
export function refusePassword(url: string): void {
  if (/^\w+:\/\/[^/?#]*@/.test(url))
    throw usageError('The URL has a user or a password. Leave it out, and give a key with --api-key KEY.')
}

/** One option of a command line, as `parseArgs` reads it. */
interface OptionToken {
  readonly name: string
  /** As it was written: `--out`, `-o`. */
  readonly rawName: string
  readonly value?: string | undefined
  /** Whether the value is joined to the name by `=`. */
  readonly inlineValue?: boolean | undefined
}

/** Throws a usage error for an option that does not exist, lacks its value, or has one that it does not accept. */
function checkOption({ name, rawName, value, inlineValue }: OptionToken, options: Options): void {
  const option = Object.hasOwn(options, name) ? options[name] : undefined
  if (!rawName.startsWith('--') && option?.short !== rawName.slice(1))
    throw usageError(`There is no option ${rawName}. For an argument that begins with a dash, write -- before it.`)
  if (!option)
    throw usageError(
      `There is no option ${rawName}. ${didYouMean(rawName, [...Object.keys(options).map(known => `--${known}`), '--color', '--help'])}`
    )
  if (option.type === 'boolean' && value !== undefined) throw usageError(`${rawName} takes no value.`)
  if (option.type === 'string' && value === undefined) throw usageError(`${rawName} needs a value.`)
  if (option.type === 'string' && !inlineValue && value !== '-' && value?.startsWith('-')) {
    throw usageError(`${rawName} needs a value. For one that begins with a dash write ${rawName}=${value}.`)
  }
}

/** Authenticates callers by `Authorization: Bearer KEY`. Their principal is `api-key`. */
export function apiKeyAuthentication(key: string): Authenticate {
  return apiKey({ keys: { 'api-key': key }, header: 'authorization' })
}

/**
 * The validated value of `--api-key`, or of a variable. Throws a usage error for a key that an HTTP header cannot
 * carry.
 */
export function readApiKey(key: string | undefined, name = '--api-key'): string | undefined {
  if (key === undefined || /^[\x21-\x7e]+$/.test(key)) return key
  throw usageError(`${name} takes printable ASCII characters without spaces.`)
}

/**
 * The validated value of `--api-key` for an agent that is served. Throws a usage error for a key that can be guessed,
 * too.
 */
export function readOwnApiKey(given: string | undefined): string | undefined {
  const key = readApiKey(given)
  if (key !== undefined && key.length < SHORTEST_KEY) throw usageError(`The key of --api-key is too short. ${LONG_KEY}`)
  return key
}
