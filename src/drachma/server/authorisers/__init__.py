"""Who answers the question whether a user may do something: roles, and what a node has to do with an object."""
