import { ours } from './contenders.ts'
import { figuresOf } from './figures.ts'
import { run, type Race } from './race.ts'
import type { Scale } from './scale.ts'
import { chunkRaces } from './scenarios/chunks.ts'
import { clusterTables } from './scenarios/cluster.ts'
import { diffTables } from './scenarios/diff.ts'
import { durableTables } from './scenarios/durable.ts'
import { engineTables } from './scenarios/engines.ts'
import { getTaskRaces } from './scenarios/get-task.ts'
import { inspectRaces, observeRaces } from './scenarios/inspect.ts'
import { largeTables } from './scenarios/large.ts'
import { pollerTable, pollRaces } from './scenarios/mcp.ts'
import { connectionTable, memoryTable } from './scenarios/memory.ts'
import { postgresTables } from './scenarios/postgres.ts'
import { postgresGrowthTables } from './scenarios/postgres-growth.ts'
import { sendRaces } from './scenarios/send.ts'
import { streamRaces } from './scenarios/stream.ts'
import { tenantTable } from './scenarios/tenants.ts'
import { raceTable } from './tables.ts'

/**
 * Runs a scenario; hands over each part as Markdown when it is there. `against`: the folder of another version, whose
 * servers take part in races instead of other projects'.
 */
export type Scenario = (scale: Scale, show: (markdown: string) => void, against?: string) => Promise<void>

/** All that is measured, by the names that `--only` takes. */
export const scenarios: Readonly<Record<string, Scenario>> = {
  send: races(sendRaces),
  get: races(getTaskRaces),
  stream: races(streamRaces),
  chunks: races(chunkRaces),
  inspect: races(inspectRaces),
  observe: races(observeRaces),
  durable: async (scale, show) => {
    for (const { title, rows } of await durableTables(scale)) show(section(title, rows))
  },
  large: async (scale, show) => {
    for (const { title, rows } of await largeTables(scale)) show(section(title, rows))
  },
  postgres: async (scale, show) => {
    for (const { title, rows } of await postgresTables(scale)) show(section(title, rows))
  },
  engines: async (scale, show) => {
    for (const { title, rows } of await engineTables(scale)) show(section(title, rows))
  },
  cluster: async (scale, show) => {
    for (const { title, rows } of await clusterTables(scale)) show(section(title, rows))
  },
  'postgres-growth': async (scale, show) => {
    for (const { title, rows } of await postgresGrowthTables(scale)) show(section(title, rows))
  },
  tenants: async (scale, show) =>
    show(section('SendMessage of one tenant, 50 a second, beside another that floods', await tenantTable(scale))),
  mcp: async (scale, show, against) => {
    await races(pollRaces)(scale, show, against)
    if (against === undefined)
      show(section('GetTask of one caller beside another that polls 1,000 tasks over MCP', await pollerTable(scale)))
  },
  diff: async (scale, show) => {
    for (const { title, rows } of await diffTables(scale)) show(section(title, rows))
  },
  memory: async (scale, show) => {
    show(section('Memory of a task that waits in input-required', await memoryTable(scale)))
    show(section('Memory of an idle connection', await connectionTable(scale)))
  }
}

function races(of: (scale: Scale) => Race[]): Scenario {
  return async (scale, show, against) => {
    const raced = of(scale)
    for (const race of against === undefined ? raced : raced.flatMap(each => racesAgainst(each, against))) {
      const lanes = await run(race)
      show(section(race.title, raceTable(race, figuresOf(lanes, race))))
    }
  }
}

/** Each of our servers of a race beside the same server of another version. */
function racesAgainst(race: Race, folder: string): Race[] {
  return race.contenders
    .filter(({ file }) => file === ours.file)
    .map(contender => {
      const other = { ...contender, name: `${contender.name}, the other version`, folder }
      return {
        ...race,
        title: `${race.title}: ${contender.name}`,
        contenders: [contender, other],
        baseline: { contender: other, name: 'the other' }
      }
    })
}

function section(title: string, table: string): string {
  return `### ${title}\n\n${table}\n`
}
