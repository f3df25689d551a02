// A section of a settings page: title and description beside its controls.
import { Paper, SimpleGrid, Stack, Text, Title } from '@mantine/core'
import type { ReactNode } from 'react'

interface SectionProps {
  title: string
  description: string
  children: ReactNode
}

export function Section({ title, description, children }: SectionProps) {
  return (
    <Paper p="lg" component="section">
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
        <Stack gap={4}>
          <Title order={2} size="h4">
            {title}
          </Title>
          <Text size="sm" c="dimmed" maw={380}>
            {description}
          </Text>
        </Stack>
        <div>{children}</div>
      </SimpleGrid>
    </Paper>
  )
}
