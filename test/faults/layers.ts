/** A layer of the tests, as the files that are run one after the other until one fails. */
export interface Layer {
  readonly name: string
  readonly files: readonly string[]
}

/** The layers, in the order of the table. */
export const LAYERS: readonly Layer[] = [
  {
    name: 'chart',
    files: [
      ...['negotiation-machine', 'supervision', 'protocol/protocol-tables', 'task-machine', 'context-machine'].map(
        name => `test/machines/${name}.test.ts`
      ),
      'test/runtime/xstate/compiled-logic.test.ts'
    ]
  },
  { name: 'paths', files: ['test/faults/layers/paths.ts'] },
  { name: 'simulation', files: ['test/faults/layers/simulation.ts'] },
  { name: 'conformance', files: ['test/conformance/conformance.test.ts'] }
]
