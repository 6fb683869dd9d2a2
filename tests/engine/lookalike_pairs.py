"""Sentences of our own that look like changes and are none, and changes that look like them. No weights know them."""

# A denial of the very thing that was said.
DENIED = [
    ("User is allergic to penicillin", "User is not allergic to penicillin"),
    ("User is allergic to bees", "It turned out that the user is not allergic to bees"),
    ("User eats gluten", "User does not eat gluten any more"),
    ("User speaks Polish", "User does not speak Polish"),
    ("Tomas has a driving licence", "Tomas does not have a driving licence"),
    ("The service supports IPv6", "The service does not support IPv6"),
    ("Maya drinks coffee", "Maya doesn't drink coffee"),
    ("User owns a car", "User no longer owns a car"),
    ("Ines smokes", "Ines does not smoke"),
    ("The office has a canteen", "The office has no canteen"),
    ("The user eats meat", "The user never eats meat"),
    ("The build server has a GPU", "The build server has no GPU"),
    ("User works as a nurse", "User is no longer a nurse"),
    ("User is a smoker", "User no longer smokes"),
    ("The team lead is Tom", "Tom is not the team lead any more"),
    ("User is fluent in Polish", "User does not speak Polish any longer"),
    ("The office is in Berlin", "The office is no longer in Berlin"),
    ("User has two dogs", "User has no dogs anymore"),
    ("User has a cat allergy", "User isn't allergic to cats"),
    ("I am allergic to kiwi", "I'm not allergic to kiwi"),
]

# A denial of another thing, whichever was said first.
ANOTHER_DENIED = [
    ("User is allergic to penicillin", "User is not allergic to peanuts"),
    ("User is allergic to bees", "User is not allergic to cats"),
    ("User cannot eat gluten", "User can eat dairy"),
    ("User is intolerant to gluten", "User is not intolerant to dairy"),
    ("User speaks Polish", "User does not speak Czech"),
    ("Maya drinks coffee", "Maya does not drink wine"),
    ("Tomas likes cycling", "Tomas does not like swimming"),
    ("The service supports IPv6", "The service does not support HTTP/3"),
    ("The user owns a boat", "The user does not own a car"),
    ("Ines plays the piano", "Ines does not play the violin"),
    ("Anna has a dog", "Anna has no cat"),
    ("The API accepts JSON", "The API does not accept XML"),
    ("User is afraid of spiders", "User is not afraid of heights"),
    ("User eats fish", "User does not eat pork"),
    ("The office has a canteen", "The office has no gym"),
    ("Peter is a member of the chess club", "Peter is not a member of the rowing club"),
    ("User is not allergic to cats", "User is allergic to bees"),
    ("User does not speak Czech", "User speaks Polish"),
    ("The backend does not use Redis", "The backend uses Kafka"),
    ("Patient tolerates ibuprofen", "Patient does not tolerate aspirin"),
    ("User takes vitamin D", "User does not take magnesium"),
    ("User subscribes to the Times", "User doesn't subscribe to the Guardian"),
    ("Ben is allergic to nuts", "Ben has no allergy to eggs"),
    ("User is allergic to penicillin", "User does not have a peanut allergy"),
    ("The invoice is for Acme", "The invoice is not for Globex"),
    ("There is a cafeteria in building 7", "There is no cafeteria in building 5"),
    ("User is a developer", "User is not a nurse"),
    ("The office is in Frankfurt", "The office is not in Berlin"),
    ("The team lead is Claire", "The team lead is not Tom"),
    ("User is vegetarian on weekdays", "User is not vegan"),
    ("Lena's exam is on Friday", "Lena's exam is not on Tuesday"),
    ("User keeps chickens", "User does not keep goats"),
    ("User eats pork", "User never eats beef"),
    ("Maria speaks fluent Portuguese", "Maria cannot speak Spanish"),
    ("User keeps bees", "User keeps no ducks"),
    ("I am allergic to penicillin", "I'm not allergic to peanuts"),
    ("Cheques are not accepted", "Card payments are accepted"),
    ("User was diagnosed with asthma", "User was not diagnosed with diabetes"),
    ("The family home is in Utrecht", "The holiday house is not in Utrecht"),
    ("The office printer is in room 4", "The coffee machine is not in room 4"),
    ("User grew up in Cork", "User does not live in Cork"),
    ("User was born in Naples", "User doesn't live in Naples anymore"),
    ("User is married", "User has no children"),
    ("Allergy: peanuts", "Not an allergy: gluten"),
]

# What was denied is so now.
TRUE_AFTER_ALL = [
    ("User is not allergic to peanuts", "User was diagnosed with a peanut allergy"),
    ("User is not allergic to peanuts", "User is allergic to peanuts"),
    ("User does not speak Czech", "User speaks Czech now"),
    ("The office has no canteen", "The office has a canteen now"),
    ("User does not drink alcohol", "User started drinking alcohol again"),
    ("User has no pets", "User adopted a dog"),
    ("Maya does not drink coffee", "Maya drinks coffee"),
]

# What happened once changes nothing.
PASSING_EVENTS = [
    ("User lives in Lisbon", "User visited Porto last week"),
    ("User drives a Volvo", "User rented a Fiat yesterday"),
    ("User works at Halden", "Yesterday the user had lunch at Norvik"),
    ("The standup is at 9:30", "Yesterday the standup began at 9:50"),
    ("User is vegetarian", "User tried a beef burger last week"),
    ("Ines takes the bus to work", "Ines took a taxi to work this morning"),
    ("The nightly backup takes two hours", "Last night the backup took five hours"),
    ("The deploy runs on Tuesdays", "Last week the deploy ran on a Thursday"),
    ("User wakes up at six", "User woke up at nine yesterday"),
    ("Bruno drinks tea in the morning", "Bruno drank coffee this morning"),
    ("The API's latency is 80 ms", "The API's latency was 400 ms for ten minutes yesterday"),
    ("User plays tennis on Sundays", "User played squash last Sunday"),
    ("Mr Sorel wears hearing aids", "Mr Sorel got new reading glasses last week"),
    ("Mrs Berg is in room 12", "Mrs Berg was taken to the X-ray room yesterday"),
    ("The gateway is up", "The gateway was down for five minutes last night"),
]

# Nothing has changed yet.
PLANS = [
    ("User lives in Lisbon", "User may move to Porto next spring"),
    ("User works as a nurse", "User is thinking about becoming a teacher"),
    ("User drives a Volvo", "User is thinking about buying a Tesla"),
    ("We deploy with Jenkins", "We are considering GitHub Actions"),
    ("The database is MySQL", "We might migrate the database to PostgreSQL next year"),
    ("Maria works at Google", "Maria plans to apply at Microsoft"),
    ("The team meets on Mondays", "The team may meet on Thursdays from next spring"),
    ("The office is on 5th Street", "The office may move to Harbour Road"),
    ("John is married to Anna", "John and Anna are thinking about a divorce"),
    ("The API runs on Python 3.9", "We plan to upgrade the API to Python 3.12"),
    ("User is single", "User would like to get married one day"),
    ("User has a cat", "User wants to adopt a dog next summer"),
    ("User pays for the basic plan", "User is considering the premium plan"),
]

# Each tells of another one of a row.
ANOTHER_OF_A_ROW = [
    ("auth-relay listens on port 8441 in production", "auth-relay listens on port 9441 in staging"),
    ("The internal wiki runs on port 3000", "The public wiki runs on port 3001"),
    ("The user's sister is 34", "The user's brother is 36"),
    ("The read replica has 16 GB of memory", "The write replica has 32 GB of memory"),
    ("The disk alert fires at 80 %", "The memory alert fires at 90 %"),
    ("SLO for catalog-api: 99.9 %, p99 below 400 ms.", "SLO for billing-core: 99.9 %, p99 below 800 ms."),
]

# Both are denied, or came to an end.
BOTH_DENIED = [
    ("User is not allergic to peanuts", "User is not allergic to shellfish"),
    ("The user does not eat pork", "The user does not eat beef"),
    ("Tom does not drink coffee", "Tom does not drink alcohol"),
    ("Anna never works on Fridays", "Anna never works on Sundays"),
    ("The user is not vegan", "The user is not vegetarian"),
    ("We don't deploy on Fridays", "We don't deploy on holidays"),
    ("The user can't eat gluten", "The user can't eat nuts"),
    ("The tests don't need Docker", "The tests don't need a network"),
    ("No meetings on Mondays", "No meetings on Thursdays"),
    ("Ben isn't on the payroll team", "Ben isn't on the billing team"),
    ("User no longer works at Siemens", "User no longer works at Bosch"),
    ("The build does not run on Windows", "The build does not run on ARM"),
    ("User stopped smoking", "User stopped drinking"),
    ("The user quit the choir", "The user quit the gym"),
]

# Of these one can have several.
SEVERAL = [
    ("User is allergic to penicillin", "User is allergic to bees"),
    ("User is intolerant to lactose", "User is intolerant to fructose"),
    ("Anna is a member of the finance committee", "Anna joined the events committee"),
    ("Peter plays in a jazz band", "Peter joined a string quartet"),
    ("The frontend uses React", "The frontend uses Tailwind"),
    ("The project uses Redis", "The project uses PostgreSQL"),
    ("The backend uses Django", "The backend uses Celery"),
    ("User speaks Spanish", "User learned Italian"),
    ("User has a cat", "User got a canary"),
    ("Karin coaches the under-12 team", "Karin coaches the under-16 team"),
    ("User subscribes to Netflix", "User subscribes to Spotify"),
    ("The shop sells bread", "The shop sells cheese"),
    ("The clinic offers X-rays", "The clinic offers blood tests"),
    ("User collects stamps", "User collects coins"),
    ("User is on the parents' council", "User joined the school choir"),
    ("The library supports Python", "The library supports Ruby"),
    ("Tilda takes ibuprofen", "Tilda takes vitamin D"),
    ("The team uses Slack", "The team uses Jira"),
    ("User owns a flat in Ghent", "User owns a cabin in Norway"),
    ("User volunteers at the animal shelter", "User volunteers at the food bank"),
]

# Changes that have the words of events, plans and memberships, too.
CHANGED = [
    ("Dad's birthday is on 3 November.", "I had it wrong: Dad was born on the 13th of November, not the 3rd."),
    ("User lives in Lisbon", "User moved to Porto last month"),
    ("The project uses Redis", "The project now uses Valkey instead of Redis"),
    ("The database is MySQL", "We migrated the database to PostgreSQL yesterday"),
    ("Anna chairs the finance committee", "Anna no longer chairs the finance committee"),
    ("The standup is at 9:30", "The standup has been moved to 10:00"),
    ("User is engaged to Eve", "User got married to Eve last Saturday"),
    ("The API runs on Python 3.9", "Last week the API was upgraded to Python 3.12"),
    ("User drives a Volvo", "User sold the Volvo yesterday"),
    ("The office is on 5th Street", "The office moved to Harbour Road last week"),
    ("Anna is a member of the finance committee", "Anna left the finance committee"),
    ("User takes ibuprofen", "User stopped taking ibuprofen"),
    ("The rent is 900 euros", "The rent is 950 euros"),
]
