import type { Runtime } from '../../../runtime/runtime.ts'
import type { Dialect } from '../../json-rpc/dialect.ts'
import { CommandError } from '../command.ts'

type Make = (runtime: Runtime) => Dialect

/** The older versions of A2A for `--legacy`. Throws CommandError without the official SDK, an optional peer, which translates 0.3. */
export async function legacyDialects(runtime: Runtime, load: () => Promise<{ readonly dialect03: Make; readonly dialect01: Make }> = () => import('../../legacy/index.ts')): Promise<Dialect[]> {
  try {
    const { dialect03, dialect01 } = await load()
    return [dialect03(runtime), dialect01(runtime)]
  } catch (cause) {
    throw new CommandError('--legacy needs the official SDK, which translates A2A 0.3. Install it: npm install @a2a-js/sdk', { cause })
  }
}
