import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { full, quick, type Scale } from './scale.ts'
import { scenarios } from './scenarios.ts'

/** What a run was asked to do. */
export interface Asked {
  readonly scale: Scale
  /** Names of scenarios. */
  readonly names: readonly string[]
  /** Which figures are kept: `all` of a full run; with `--write` `some`, those of the scenarios that run. */
  readonly keep: 'all' | 'some' | 'none'
  /** The path of the Node that runs the servers. */
  readonly node: string
  /** A checkout of another version, whose servers are raced instead of other projects'. */
  readonly against: string | undefined
}

/**
 * Reads `--quick`, `--only send,stream`, `--write`, `--against FOLDER` and `--node PATH`. Throws TypeError that says
 * what may be given.
 */
export function readArguments(given: readonly string[]): Asked {
  const { values } = parseArgs({
    args: [...given],
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      against: { type: 'string' },
      write: { type: 'boolean', default: false },
      node: { type: 'string', default: process.execPath }
    }
  })
  const all = Object.keys(scenarios)
  const names = values.only?.split(',') ?? all
  const unknown = names.find(name => !all.includes(name))
  if (unknown !== undefined) throw new TypeError(`There is no scenario ${JSON.stringify(unknown)}: ${all.join(', ')}.`)
  if (values.quick && values.write) throw new TypeError('A quick run is a trial: use --write without --quick.')
  if (!existsSync(values.node)) throw new TypeError(`There is no Node at ${values.node}.`)
  if (values.against !== undefined && !existsSync(`${values.against}/.build-bench`))
    throw new TypeError(`${values.against} has no .build-bench. Run npm run build:bench there.`)
  return {
    scale: values.quick ? quick : full,
    names,
    keep:
      values.quick || values.against !== undefined
        ? 'none'
        : values.only === undefined
          ? 'all'
          : values.write
            ? 'some'
            : 'none',
    against: values.against,
    node: values.node
  }
}
