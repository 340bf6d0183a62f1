import type { Runtime } from '../../runtime/runtime.ts'
import type { Dialect } from '../legacy/dialect.ts'
import { CommandError } from './command.ts'

/** The older versions of A2A for `--legacy`. Throws CommandError without the official SDK, an optional peer, whose layer translates. */
export async function legacyDialects(runtime: Runtime, load: () => Promise<{ readonly dialect03: (runtime: Runtime) => Dialect }> = () => import('../legacy/index.ts')): Promise<Dialect[]> {
  try {
    const { dialect03 } = await load()
    return [dialect03(runtime)]
  } catch (cause) {
    throw new CommandError('--legacy needs the official SDK, which translates A2A 0.3. Install it: npm install @a2a-js/sdk', { cause })
  }
}
