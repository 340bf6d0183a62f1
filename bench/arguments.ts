import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { full, quick, type Scale } from './scale.ts'
import { scenarios } from './scenarios.ts'

/** What a run was asked to do. */
export interface Asked {
  readonly scale: Scale
  /** Names of scenarios. */
  readonly names: readonly string[]
  /** Whether all of it runs in full: only then the figures may be kept. */
  readonly isFull: boolean
  /** The path of the Node that runs the servers. */
  readonly node: string
  /** A checkout of another version, whose servers are raced instead of other projects'. */
  readonly against: string | undefined
}

/** Reads `--quick`, `--only send,stream`, `--against FOLDER` and `--node PATH`. Throws TypeError that says what may be given. */
export function readArguments(given: readonly string[]): Asked {
  const { values } = parseArgs({
    args: [...given],
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      against: { type: 'string' },
      node: { type: 'string', default: process.execPath }
    }
  })
  const all = Object.keys(scenarios)
  const names = values.only?.split(',') ?? all
  const unknown = names.find(name => !all.includes(name))
  if (unknown !== undefined) throw new TypeError(`There is no scenario ${JSON.stringify(unknown)}: ${all.join(', ')}.`)
  if (!existsSync(values.node)) throw new TypeError(`There is no Node at ${values.node}.`)
  if (values.against !== undefined && !existsSync(`${values.against}/.build-bench`))
    throw new TypeError(`${values.against} has no .build-bench. Run npm run build:bench there.`)
  return {
    scale: values.quick ? quick : full,
    names,
    isFull: !values.quick && values.only === undefined && values.against === undefined,
    against: values.against,
    node: values.node
  }
}
