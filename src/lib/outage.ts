export interface OutageEvents {
  /** The first failure of several in a row. */
  onFailure(error: unknown): void
  /** The first success after them. */
  onRecovery(): void
}

/** Reports each outage of repeated work once. Failures while the work is being stopped are not reported. */
export function createOutageReporter({ onFailure, onRecovery }: OutageEvents, isStopping: () => boolean) {
  let isFailing = false
  const succeeded = () => {
    if (isFailing) onRecovery()
    isFailing = false
  }
  const failed = (error: unknown) => {
    if (!isFailing && !isStopping()) onFailure(error)
    isFailing = true
  }
  return { observe: (work: Promise<void>): Promise<void> => work.then(succeeded, failed) }
}
