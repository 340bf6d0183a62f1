import { readdirSync } from 'node:fs'
import { join } from 'node:path'

const sources = ['machines', 'runtime', 'adapters', 'examples'].flatMap(function filesIn(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? filesIn(path) : [path]
  })
})

/** The page runs in a browser, where its tests drive it. */
const ours = sources.filter(path => !path.startsWith(join('adapters', 'inspector', 'page')))

/** Every test may cover every source; the tests' own helpers are not measured. */
export default () => ours
