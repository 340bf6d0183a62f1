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
  'adapters/storage/', 'adapters/cli/db/', 'adapters/cli/tasks/', 'adapters/testing/disk.ts',
  ...['line-sink', 'open-store', 'replay', 'state-text', 'time-text'].map(name => `adapters/cli/${name}.ts`)
]

/** The page runs in a browser, where its tests drive it. */
const unmeasured = ['adapters/inspector/page', ...(NO_SQLITE === false ? [] : ONLY_ON_SQLITE)].map(path => join(path))

const ours = sources.filter(path => !unmeasured.some(start => path.startsWith(start)))

/** Every test may cover every source; the tests' own helpers are not measured. */
export default () => ours
