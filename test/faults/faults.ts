import { adapterFaults } from './adapter-faults.ts'
import { agentFaults } from './agent-faults.ts'
import { chartFaults } from './chart-faults.ts'
import type { Fault } from './fault.ts'
import { runtimeFaults } from './runtime-faults.ts'
import { toolFaults } from './tool-faults.ts'

/** Every fault that is planted. */
export const FAULTS: readonly Fault[] = [
  ...chartFaults,
  ...agentFaults,
  ...runtimeFaults,
  ...adapterFaults,
  ...toolFaults
]
