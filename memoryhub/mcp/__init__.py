"""The memory as tools and resources of the Model Context Protocol, by HTTP in the hub and by a command on stdio."""
