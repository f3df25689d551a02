// Loading, error and empty states of a query.
import { Alert, Button, Group, Paper, Skeleton, Stack, Text, Title } from '@mantine/core'
import type { ReactNode } from 'react'
import { isTransient } from '../../api-error.ts'
import { SearchIcon, WarningIcon } from '../../icons.tsx'

interface QueryState<T> {
  data: T | undefined
  error: Error | null
  isFetching: boolean
  refetch: () => unknown
}

interface QueryResultProps<T> {
  query: QueryState<T>
  skeleton: ReactNode
  children: (data: T) => ReactNode
}

/** Loaded data stays visible when a later refetch fails. */
export function QueryResult<T>({ query, skeleton, children }: QueryResultProps<T>) {
  if (query.data !== undefined) return children(query.data)
  if (query.error)
    return <LoadError error={query.error} retry={query.refetch} isRetrying={query.isFetching} />
  return <output aria-label="Loading">{skeleton}</output>
}

export function SkeletonRows({ count = 4, height = 44 }: { count?: number; height?: number }) {
  return (
    <Stack gap="xs">
      {Array.from({ length: count }, (_, row) => (
        <Skeleton key={row} h={height} />
      ))}
    </Stack>
  )
}

interface LoadErrorProps {
  error: Error
  retry: () => unknown
  isRetrying: boolean
}

/** Error of a failed query. Only transient errors are retried automatically. */
export function LoadError({ error, retry, isRetrying }: LoadErrorProps) {
  return (
    <Alert color="red" icon={<WarningIcon />} title="Failed to load" role="alert">
      <Stack align="flex-start" gap="sm">
        <Text size="sm">
          {error.message}
          {isTransient(error) && ' Retrying automatically every few seconds.'}
        </Text>
        <Button size="xs" variant="default" loading={isRetrying} onClick={() => retry()}>
          Retry now
        </Button>
      </Stack>
    </Alert>
  )
}

/** The error of a failed action. */
export function ErrorAlert({ error }: { error: Error | null }) {
  if (!error) return null
  return (
    <Alert color="red" icon={<WarningIcon />} role="alert">
      {error.message}
    </Alert>
  )
}

interface EmptyStateProps {
  icon: ReactNode
  title: string
  children?: ReactNode
  action?: ReactNode
}

export function EmptyState({ icon, title, children, action }: EmptyStateProps) {
  return (
    <Paper p="xl">
      <Stack align="center" gap="xs" ta="center" py="md">
        <Text c="dimmed" component="span">
          {icon}
        </Text>
        <Title order={2} size="h4">
          {title}
        </Title>
        {children && (
          <Text c="dimmed" size="sm" maw={440}>
            {children}
          </Text>
        )}
        {action && <Group mt="sm">{action}</Group>}
      </Stack>
    </Paper>
  )
}

/** Shown if there is a next page: a request examines a limited number of items. */
export const NoMatchYet = ({ items }: { items: string }) => (
  <EmptyState icon={<SearchIcon size={36} />} title={`No match among the newest ${items}`}>
    Load more to search older {items}.
  </EmptyState>
)
