import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { NO_SQLITE } from './.build/test/fixtures/sqlite.js'

const sources = ['machines', 'runtime', 'adapters', 'examples'].flatMap(function filesIn(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? filesIn(path) : [path]
  })
})

/** What only tests on a SQLite file cover; without a SQLite they are left out. */
const ONLY_ON_SQLITE = [
  'adapters/storage/', 'adapters/cli/db.ts', 'adapters/cli/tasks/', 'adapters/cli/serve/open-store.ts', 'adapters/cli/test/replay.ts',
  'adapters/cli/text/state-text.ts', 'adapters/cli/text/time-text.ts', 'adapters/testing/run/disk.ts'
]

/** The page runs in a browser, where its tests drive it. */
const PAGE = 'adapters/inspector/page/'

for (const start of [PAGE, ...ONLY_ON_SQLITE]) {
  if (!sources.some(path => path.startsWith(join(start)))) throw new Error(`coverage-map.js names ${start}, which is not there`)
}

const unmeasured = NO_SQLITE === false ? [PAGE] : [PAGE, ...ONLY_ON_SQLITE]
const ours = sources.filter(path => !unmeasured.some(start => path.startsWith(join(start))))

/** Every test may cover every source; the tests' own helpers are not measured. */
export default () => ours
