import { buildPackage, buildStale } from './builds.ts'

/**
 * Builds `dist`. Without an option it builds everything from nothing. `--stale` builds what is missing or older than
 * its sources, and `--release` what is packed, unless `dist` is that already.
 */
const [option] = process.argv.slice(2)
const built = option === '--stale' ? buildStale(['library', 'page']) : buildPackage({ release: option === '--release' })
await built.catch((error: Error) => {
  console.error(error.message)
  process.exitCode = 1
})
