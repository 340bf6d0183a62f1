/** One value of a metric. */
export interface MetricValue {
  readonly value: number
  /** Names and values are of the code, never of a client. */
  readonly attributes: Readonly<Record<string, string>>
}

/** The description of a metric, in OpenTelemetry's form. */
export interface MetricDefinition {
  /** `taskchart.tasks.ended`: in Prometheus `taskchart_tasks_ended_total`. */
  readonly name: string
  /** `counter`: a number of events since the runtime was created; `gauge`: a value now. */
  readonly kind: 'counter' | 'gauge'
  /** In UCUM: `s` for seconds, `By` for bytes; `{task}` and the like for numbers of things. */
  readonly unit: string
  readonly description: string
}

/** A metric with its values now. */
export interface Metric extends MetricDefinition {
  readonly values: readonly MetricValue[]
}

/** The metrics of a runtime, for an exporter. */
export interface MetricSource {
  readonly definitions: readonly MetricDefinition[]
  /** Reads all metrics, in the order of the definitions. Does not reject. */
  read(): Promise<readonly Metric[]>
}
