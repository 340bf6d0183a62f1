import { readdirSync } from 'node:fs'
import { join } from 'node:path'

const sources = ['machines', 'runtime', 'adapters', 'examples'].flatMap(function filesIn(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? filesIn(path) : [path]
  })
})

/** Every test may cover every source; the tests' own helpers are not measured. */
export default () => sources
