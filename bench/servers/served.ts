import { tuneCollection } from '../../adapters/cli/tuning.ts'

tuneCollection()
await import('./ours.ts')
