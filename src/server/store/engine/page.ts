// A page of a list, for keyset pagination.

export interface Page {
  /** Start after the row with this id, or with this value of the column that the list is sorted by. */
  after?: string | undefined
  limit: number
}
