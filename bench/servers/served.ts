import { tuneProcess } from '../../adapters/cli/tuning.ts'

tuneProcess()
await import('./ours.ts')
