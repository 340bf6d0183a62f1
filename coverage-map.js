import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { NO_POSTGRES } from './.build/test/fixtures/stores/postgres.js'
import { NO_SQLITE } from './.build/test/fixtures/stores/sqlite.js'

const sources = ['machines', 'runtime', 'adapters', 'examples'].flatMap(function filesIn(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? filesIn(path) : [path]
  })
})

/** What only tests on a SQLite file cover; without a SQLite they are left out. */
const ONLY_ON_SQLITE = [
  'adapters/rows/', 'adapters/storage/', 'adapters/cli/db.ts', 'adapters/cli/db-contents.ts', 'adapters/cli/doctor/database.ts', 'adapters/cli/tasks/', 'adapters/cli/serve/open-store.ts', 'adapters/cli/test/replay.ts',
  'adapters/cli/text/state-text.ts', 'adapters/cli/text/time-text.ts', 'adapters/testing/run/disk.ts'
]

/** What only tests on a PostgreSQL server cover; without one they are left out. */
const ONLY_ON_POSTGRES = ['adapters/postgres/', 'adapters/cluster/cluster.ts', 'adapters/cluster/status.ts', 'adapters/cluster/placement/', 'adapters/cli/cluster/', 'adapters/cli/serve/open-node.ts']

/** The page runs in a browser, where its tests drive it. The others run when the package or the example is built. */
const ELSEWHERE = ['adapters/inspector/page/', 'adapters/client/browser/vite.', 'examples/web/']

for (const start of [...ELSEWHERE, ...ONLY_ON_SQLITE, ...ONLY_ON_POSTGRES]) {
  if (!sources.some(path => path.startsWith(join(start)))) throw new Error(`coverage-map.js names ${start}, which is not there`)
}

const unmeasured = [...ELSEWHERE, ...(NO_SQLITE === false ? [] : ONLY_ON_SQLITE), ...(NO_POSTGRES === false ? [] : ONLY_ON_POSTGRES)]
const ours = sources.filter(path => !unmeasured.some(start => path.startsWith(join(start))))

/** Every test may cover every source; the tests' own helpers are not measured. */
export default () => ours
